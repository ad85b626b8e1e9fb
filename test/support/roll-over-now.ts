import type { WorkflowHandle } from "@temporalio/client";
import { expect } from "vitest";
import { signals } from "../../src/contracts/names.js";
import { eventually } from "./until.js";

/** Has an idle session go on in a new run, and waits until it has. */
export async function rollOverNow(handle: WorkflowHandle): Promise<void> {
  const before = (await handle.describe()).runId;
  await handle.signal(signals.rollOver);
  await eventually(async () => expect((await handle.describe()).runId).not.toBe(before));
}
