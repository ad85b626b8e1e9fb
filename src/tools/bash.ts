import * as z from "zod";

import { LonghaulError } from "../contracts/errors.js";
import { type CommandResult, runCommand } from "../process/run-command.js";
import { type CapturedOutput } from "../process/output-tail.js";
import { decodeText, tailBytes } from "../process/utf8.js";
import { defineTool, type ToolReturn } from "./define.js";
import { commandDirectory } from "./workspace-path.js";

const defaultTimeoutMs = 60_000;
const maxTimeoutMs = 600_000;

/** One `bash -c` per call, no state between calls (spec/harness §8). */
export const bashTool = defineTool({
  name: "bash",
  jobKind: "bash",
  description:
    "Run a command with bash in the workspace. Each call is a new shell without a terminal or input. The whole process group ends with the call: for what takes long or should go on afterwards use run_in_background: the call then answers the id of a job at once, and its output is read with job_output. Long output is cut to its end; the rest can be read at the address given.",
  parameters: z.object({
    command: z.string().min(1).describe("The command line for bash -c."),
    description: z.string().describe("What it does, in a few words."),
    timeoutMs: z
      .int()
      .min(1)
      .optional()
      .describe(`Deadline in milliseconds, default ${defaultTimeoutMs}, at most ${maxTimeoutMs}.`),
    workdir: z
      .string()
      .min(1)
      .optional()
      .describe("Directory to run in, default the workspace; relative paths start there."),
    run_in_background: z
      .boolean()
      .optional()
      .describe("Start it as a background job, without a deadline, and answer its id at once."),
  }),
  async execute({ command, timeoutMs = defaultTimeoutMs, workdir, ...rest }, context) {
    // The session starts jobs itself; a call that comes here with it was made where there are none.
    if (rest.run_in_background === true)
      throw new LonghaulError(
        "JOBS_UNAVAILABLE",
        "background jobs unavailable: this session does not start jobs; call bash without run_in_background",
      );
    if (command.includes("\0"))
      throw new LonghaulError("INVALID_ARGS", "command must not contain NUL");
    if (context.claimDirectory === undefined) throw new Error("bash runs under a claim");
    const deadline = Math.min(timeoutMs, maxTimeoutMs);
    const result = await runCommand({
      command,
      cwd: await commandDirectory(context, workdir),
      marks: { home: context.home, sessionId: context.sessionId, claim: context.claim },
      directory: context.claimDirectory,
      store: context.store,
      signal: context.signal,
      timeoutMs: deadline,
    });
    return render(result, deadline, context.maxInlineBytes);
  },
});

/** stdout, `[stderr]` part, then notes, timeout, signal and exit markers. */
function render(result: CommandResult, deadline: number, maxBytes: number): ToolReturn {
  const notes = markers(result, deadline);
  const room = maxBytes - Buffer.byteLength(notes.join("\n")) - 300;
  const body = bodyOf(result, room);
  const text = [body, ...notes].join("\n");
  const meta = {
    exitCode: result.exitCode,
    signal: result.signal,
    timedOut: result.endedBy === "timeout",
  };
  if (result.endedBy === "abort") {
    return {
      text: `Error: the command was cancelled and its processes were ended\n${text}`,
      meta,
      error: { code: "ABORTED" },
    };
  }
  if (result.endedBy === "lost-watch") {
    return {
      text: `Error: the command was ended because its worker stood still or the watch over it was lost; it may have had effects and is not run again: check before you repeat it\n${text}`,
      meta,
      error: { code: "TOOL_OUTCOME_UNKNOWN" },
    };
  }
  return { text, meta };
}

function markers(result: CommandResult, deadline: number): string[] {
  const notes: string[] = [];
  for (const [name, output] of [
    ["stdout", result.stdout],
    ["stderr", result.stderr],
  ] as const) {
    const where = fullOutput(name, output);
    if (where !== undefined) notes.push(where);
  }
  if (result.leftovers) notes.push("[processes left running in the background were ended]");
  if (result.endedBy === "timeout") notes.push(`[timed out after ${deadline} ms]`);
  if (result.signal !== null) notes.push(`[signal: ${result.signal}]`);
  if (result.exitCode !== null && result.exitCode !== 0)
    notes.push(`[exit code: ${result.exitCode}]`);
  return notes;
}

function fullOutput(name: string, output: CapturedOutput): string | undefined {
  if (output.total <= output.tail.length) return undefined;
  const part =
    output.stored < output.total
      ? `first ${output.stored} of ${output.total} bytes`
      : `all ${output.total} bytes`;
  if (output.locator === undefined)
    return `[${name} is cut to its end, ${output.total} bytes in all; full output: (unavailable)]`;
  return `[${name} is cut to its end; ${part}: ${output.locator}]`;
}

/** Tails of streams that are in the store anyway give way to the inline limit; the rest is left to the general rule. */
function bodyOf(result: CommandResult, room: number): string {
  const isCut = (output: CapturedOutput): boolean => output.locator !== undefined;
  const whole = [result.stdout, result.stderr].filter((output) => !isCut(output));
  const taken = whole.reduce((sum, output) => sum + Buffer.byteLength(decodeText(output.tail)), 0);
  const share = Math.max(0, room - taken) / Math.max(1, 2 - whole.length);
  const show = (output: CapturedOutput): string => {
    const text = decodeText(output.tail);
    return isCut(output) ? tailBytes(Buffer.from(text), Math.floor(share)).toString("utf8") : text;
  };
  const stdout = show(result.stdout).replace(/\n$/, "");
  const stderr = show(result.stderr).replace(/\n$/, "");
  const parts = [stdout, stderr === "" ? "" : `[stderr]\n${stderr}`].filter((part) => part !== "");
  return parts.length === 0 ? "(no output)" : parts.join("\n");
}
