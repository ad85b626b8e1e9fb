import * as z from "zod";
import { defineJobKind, type JobKindDefinition } from "../../src/tools/define.js";

/** A kind of job whose bodies end when the test says so; what is said before a body begins counts. */
export interface GatedJob {
  readonly kind: JobKindDefinition;
  open(session: string, jobId: string): void;
}

export function gatedJob(kind: string): GatedJob {
  const opened = new Set<string>();
  const waiting = new Map<string, () => void>();
  return {
    kind: defineJobKind({
      kind,
      output: "final",
      input: z.object({}),
      async run({ sessionId, jobId, signal }) {
        const key = `${sessionId} ${jobId}`;
        await new Promise<void>((resolve, reject) => {
          if (opened.has(key)) return resolve();
          waiting.set(key, resolve);
          signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
        });
        return { output: `result of ${jobId}` };
      },
    }),
    open(session, jobId) {
      const key = `${session} ${jobId}`;
      opened.add(key);
      waiting.get(key)?.();
    },
  };
}
