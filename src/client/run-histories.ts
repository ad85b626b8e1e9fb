import type { Client } from "@temporalio/client";
import type { Payload } from "@temporalio/common";
import type { ArchiveLogInput, CallModelInput } from "../contracts/activities.js";
import { LonghaulError } from "../contracts/errors.js";
import { activityTypes } from "../contracts/names.js";
import type { WitnessedCall } from "../domain/verify-log.js";
import { attemptUntil, type Bounded } from "./attempts.js";

/** What the history of one run says of the log. */
export interface RunHistory {
  readonly run: string;
  readonly events: number;
  readonly calls: readonly (WitnessedCall & { readonly base: string })[];
  /** Segments that it had archived. */
  readonly archives: readonly ArchiveLogInput[];
}

/** A history may have 50 MB. */
const leastPatienceMs = 60_000;

/** Histories of a session's runs, the newest first, back to the first that Temporal still has; none when it has forgotten all. */
export async function* runHistories(
  client: Client,
  bounds: Bounded,
  session: string,
  timeoutMs: number,
): AsyncGenerator<RunHistory, void, undefined> {
  const patienceMs = Math.max(timeoutMs, leastPatienceMs);
  let run: string | undefined;
  do {
    const runId: string | undefined = run;
    const handle = client.workflow.getHandle(session, runId);
    const found = await attemptUntil(
      bounds,
      {
        deadline: Date.now() + patienceMs,
        attemptMs: patienceMs,
        gone: () => Promise.resolve(new LonghaulError("SESSION_NOT_FOUND", "no such run")),
        late: (last) =>
          Promise.resolve(
            new LonghaulError(
              "TEMPORAL_UNREACHABLE",
              `Temporal did not give the history of session ${session} within ${patienceMs / 1000} s (${last.message})`,
            ),
          ),
      },
      async () => ({ history: await handle.fetchHistory() }),
    ).catch((error: unknown) => {
      if (error instanceof LonghaulError && error.code === "SESSION_NOT_FOUND") return undefined;
      throw error;
    });
    if (found === undefined) return;
    const events = found.history.events ?? [];
    const started = events[0]?.workflowExecutionStartedEventAttributes;
    const id = started?.originalExecutionRunId ?? runId ?? "";
    yield { run: id, events: events.length, ...(await factsOf(client, id, events)) };
    run = started?.continuedExecutionRunId ?? undefined;
  } while (run !== undefined && run !== "");
}

type Events = NonNullable<
  Awaited<ReturnType<ReturnType<Client["workflow"]["getHandle"]>["fetchHistory"]>>["events"]
>;

async function factsOf(
  client: Client,
  run: string,
  events: Events,
): Promise<Pick<RunHistory, "calls" | "archives">> {
  const completed = new Set(
    events.flatMap((event) => {
      const id = event.activityTaskCompletedEventAttributes?.scheduledEventId;
      return id === undefined || id === null ? [] : [String(id)];
    }),
  );
  const calls: RunHistory["calls"][number][] = [];
  const archives: ArchiveLogInput[] = [];
  for (const event of events) {
    const scheduled = event.activityTaskScheduledEventAttributes;
    const type = scheduled?.activityType?.name;
    const payloads = scheduled?.input?.payloads ?? [];
    if (type === activityTypes.callModel) {
      const { turn, step, headerSeq, length, digest, base, summary } = await decode<CallModelInput>(
        client,
        payloads,
      );
      calls.push({
        run,
        event: String(event.eventId),
        turn,
        step,
        headerSeq,
        length,
        digest,
        base,
        summary: summary !== undefined,
      });
    } else if (type === activityTypes.archiveLog && completed.has(String(event.eventId))) {
      archives.push(await decode<ArchiveLogInput>(client, payloads));
    }
  }
  return { calls, archives };
}

async function decode<T>(client: Client, payloads: readonly Payload[]): Promise<T> {
  const { payloadConverter, payloadCodecs } = client.options.loadedDataConverter;
  let decoded = [...payloads];
  for (const codec of payloadCodecs) decoded = await codec.decode(decoded);
  const [first] = decoded;
  if (first === undefined) throw new Error("an activity of a session has one input");
  return payloadConverter.fromPayload<T>(first);
}
