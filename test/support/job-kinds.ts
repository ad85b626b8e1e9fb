import { existsSync } from "node:fs";
import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";

import { defineJobKind, type JobContext } from "../../src/tools/define.js";

declare module "../../src/tools/define.js" {
  interface JobKindMap {
    readonly report: true;
    readonly ticker: true;
    readonly watcher: true;
  }
}

/** Waits for a file of the workspace; rejects with the reason of the stop. */
async function fileOf({ cwd = "", signal }: JobContext<unknown>, name: string): Promise<void> {
  while (!existsSync(join(cwd, name))) {
    signal.throwIfAborted();
    await sleep(20);
  }
}

/** Final output: `text`, `times` over, once the file `until` is there. */
export const report = defineJobKind({
  kind: "report",
  output: "final",
  outputLimitBytes: 200,
  input: z.object({
    text: z.string(),
    times: z.int().default(1),
    until: z.string().optional(),
    status: z.enum(["completed", "failed", "killed"]).optional(),
    fails: z.string().optional(),
    stubborn: z.boolean().default(false),
  }),
  async run(context) {
    const { text, times, until, status, fails, stubborn } = context.input;
    await appendFile(join(context.cwd ?? "", "runs"), `${process.pid} ${context.idempotencyKey}\n`);
    context.signal.addEventListener("abort", () => {
      const reason: unknown = context.signal.reason;
      void appendFile(join(context.cwd ?? "", "stops"), `${String(reason)}\n`);
    });
    if (until !== undefined && stubborn) {
      while (!existsSync(join(context.cwd ?? "", until))) await sleep(20);
    } else if (until !== undefined) await fileOf(context, until);
    if (fails !== undefined) throw new TypeError(fails);
    return {
      output: text.repeat(times),
      detail: "as asked",
      ...(status === undefined ? {} : { status }),
    };
  },
});

/** Streams numbers to `output` and a line to `notes`; then waits for the file `until`. */
export const ticker = defineJobKind({
  kind: "ticker",
  output: "stream",
  input: z.object({
    lines: z.int(),
    width: z.int().default(0),
    until: z.string().optional(),
  }),
  async run(context) {
    const { lines, width, until } = context.input;
    for (let line = 1; line <= lines; line++) {
      context.write(`${String(line).padStart(width)}\n`);
      if (line % 1000 === 0) await sleep(0);
    }
    context.write(Buffer.from("noted\n"), "notes");
    if (until !== undefined) await fileOf(context, until);
    return { detail: `${lines} lines` };
  },
});

/** Carries the file `log` of the workspace to its output until the file `finish` is there, and can be taken up again. */
async function carry(
  how: "run" | "reattach",
  context: JobContext<{ readonly from: string }>,
): Promise<{ readonly detail: string }> {
  const { cwd = "", signal } = context;
  await appendFile(join(cwd, "runs"), `${how} ${process.pid}\n`);
  for (;;) {
    const finished = existsSync(join(cwd, "finish"));
    const log = await readFile(join(cwd, context.input.from)).catch(() => Buffer.alloc(0));
    context.write(log.subarray(context.written()));
    if (finished) return { detail: `carried by ${how}` };
    signal.throwIfAborted();
    await sleep(20);
  }
}

export const watcher = defineJobKind({
  kind: "watcher",
  output: "stream",
  input: z.object({ from: z.string() }),
  run: async (context) => await carry("run", context),
  reattach: async (context) => await carry("reattach", context),
});

export const testKinds = [report, ticker, watcher];
