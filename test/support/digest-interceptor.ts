import { proxySinks, type Sinks, type WorkflowInterceptorsFactory } from "@temporalio/workflow";
import type { LogEntry } from "../../src/contracts/log.js";
import { queries } from "../../src/contracts/names.js";
import type { LogPage, LogQuery } from "../../src/contracts/session.js";

/**
 * For test bundles alone: tells after each activation which commands the workflow gave, with all their fields (a replay of the
 * SDK compares no timer's length), and what its log got. See replay-digests.ts.
 */
export interface DigestSinks extends Sinks {
  readonly digest: {
    activated(told: { readonly commands: string; readonly entries: string }): void;
  };
}

interface Activator {
  readonly queryHandlers: ReadonlyMap<string, { readonly handler: (query: LogQuery) => LogPage }>;
}

/** @public Loaded by its path. */
export const interceptors: WorkflowInterceptorsFactory = () => {
  const { digest } = proxySinks<DigestSinks>();
  let after = -1;
  return {
    internals: [
      {
        concludeActivation(input, next) {
          const output = next(input);
          const { __TEMPORAL_ACTIVATOR__: activator } = globalThis as unknown as {
            readonly __TEMPORAL_ACTIVATOR__: Activator;
          };
          const log = activator.queryHandlers.get(queries.log)?.handler;
          const entries: LogEntry[] = [];
          for (let page = log?.({ after, limit: 1_000 }); page !== undefined;) {
            entries.push(...page.entries);
            after = entries.at(-1)?.seq ?? after;
            page = after < page.lastSeq ? log?.({ after, limit: 1_000 }) : undefined;
          }
          digest.activated({
            // A replay runs on a queue of its own name each time.
            commands: JSON.stringify(output.commands).replaceAll(
              /fake_replay_queue-\d+/gu,
              "queue",
            ),
            entries: JSON.stringify(entries),
          });
          return output;
        },
      },
    ],
  };
};
