import { WorkflowFailedError, type Client } from "@temporalio/client";
import type { Bounded } from "./attempts.js";
import { firstLine } from "./failures.js";

export interface WorkflowFailure {
  /** A code of the list when the session failed by itself. */
  readonly type: string;
  readonly message: string;
}

/** Why the session's workflow failed; undefined while it is open, closed or ended otherwise. */
export async function failureOf(
  client: Client,
  bounds: Bounded,
  id: string,
  timeoutMs: number,
): Promise<WorkflowFailure | undefined> {
  const handle = client.workflow.getHandle(id);
  return bounds.withDeadline(Date.now() + timeoutMs, async () => {
    const { status } = await handle.describe();
    if (status.name !== "FAILED") return undefined;
    try {
      await handle.result();
      return undefined;
    } catch (error) {
      if (!(error instanceof WorkflowFailedError)) throw error;
      const type: unknown =
        error.cause === undefined ? undefined : Reflect.get(error.cause, "type");
      return {
        type: typeof type === "string" ? type : "",
        message: firstLine(error.cause?.message ?? error.message),
      };
    }
  });
}
