// Background jobs of your own, in a file that a worker loads: longhaul worker --tools ./my-jobs.ts
import { defineJobKind, defineTool } from "longhaul/tools";
import * as z from "zod";

const input = z.object({ seconds: z.int().min(1).max(3600).describe("How long.") });

const countdown = defineJobKind({
  kind: "countdown",
  output: "stream",
  input,
  async run({ input: { seconds }, signal, write }) {
    for (let left = seconds; left > 0; left--) {
      write(`${left}\n`);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      signal.throwIfAborted();
    }
    return { detail: "lift-off" };
  },
});

const start = defineTool({
  name: "countdown",
  description: "Count down. Call it with run_in_background: true and read it with job_output.",
  parameters: input.extend({ run_in_background: z.boolean().optional() }),
  jobKind: "countdown",
  execute: () => "Error: a countdown runs in the background only; set run_in_background: true",
});

export default [countdown, start];
