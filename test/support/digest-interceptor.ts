import { proxySinks, type Sinks, type WorkflowInterceptorsFactory } from "@temporalio/workflow";
import type { LogEntry } from "../../src/contracts/log.js";
import { queries } from "../../src/contracts/names.js";
import type { LogPage, LogQuery } from "../../src/contracts/session.js";

/** JSON texts; `view` and `projections` are empty for a workflow that has no such query. */
export interface Told {
  readonly commands: string;
  readonly entries: string;
  readonly view: string;
  readonly projections: string;
}

/**
 * For test bundles alone: tells after each activation which commands the workflow gave, with all their fields (a replay of the
 * SDK compares no timer's length), what its log got, and what its state is. See replay-digests.ts and replay-states.ts.
 */
export interface DigestSinks extends Sinks {
  readonly digest: {
    activated(told: Told): void;
  };
}

interface Activator {
  readonly queryHandlers: ReadonlyMap<string, { readonly handler: (query?: LogQuery) => unknown }>;
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
          const ask = (name: string, query?: LogQuery): unknown =>
            activator.queryHandlers.get(name)?.handler(query);
          const entries: LogEntry[] = [];
          for (let more = true; more;) {
            const page = ask(queries.log, { after, limit: 1_000 }) as LogPage | undefined;
            entries.push(...(page?.entries ?? []));
            // What the runs before have archived is not this one's.
            after = page?.archived?.to ?? page?.entries.at(-1)?.seq ?? after;
            more = page !== undefined && after < page.lastSeq;
          }
          const textOf = (name: string): string => JSON.stringify(ask(name)) ?? "";
          digest.activated({
            // A replay runs on a queue of its own name each time.
            commands: JSON.stringify(output.commands).replaceAll(
              /fake_replay_queue-\d+/gu,
              "queue",
            ),
            entries: JSON.stringify(entries),
            view: textOf(queries.view),
            projections: textOf(queries.projections),
          });
          return output;
        },
      },
    ],
  };
};
