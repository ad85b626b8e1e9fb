import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { WorkflowHandle } from "@temporalio/client";
import { classifyFailure, isAskedTooEarly } from "../../src/client/failures.js";

const patienceMs = 120_000;

/**
 * Asks a query again that was refused for what it brought along (docs/facts.md §0.22, §0.35). Sends an update again, under its id, that the server gave up without an answer of the session, as Longhaul's client does: one
 * that raced a query (docs/facts.md §0.9), and one that came after tasks a busy worker had not ended in time.
 */
export function patientHandle(handle: WorkflowHandle): WorkflowHandle {
  const send = handle.executeUpdate.bind(handle) as (name: string, options: object) => unknown;
  const executeUpdate = async (name: string, options: object = {}): Promise<unknown> => {
    const same = { updateId: randomUUID(), ...options };
    for (const end = Date.now() + patienceMs; ; await delay(50)) {
      try {
        return await send(name, same);
      } catch (error) {
        const failure = classifyFailure(error);
        const isOpen =
          failure.kind === "retry" && (failure.why === "update" || failure.why === "task");
        if (!isOpen || Date.now() > end) throw error;
      }
    }
  };
  const ask = handle.query.bind(handle) as (
    definition: never,
    ...args: never[]
  ) => Promise<unknown>;
  const query = async (definition: never, ...args: never[]): Promise<unknown> => {
    for (const end = Date.now() + patienceMs; ; await delay(50)) {
      try {
        return await ask(definition, ...args);
      } catch (error) {
        if (!isAskedTooEarly(error) || Date.now() > end) throw error;
      }
    }
  };
  return Object.assign(handle, { executeUpdate, query });
}
