import type { JobOutcome, JobProgress, JobWorkflowInput } from "../contracts/jobs.js";
import { oneLine } from "./details.js";
import { tailBytes } from "./job-bytes.js";
import { statusLine } from "./job-texts.js";

/** What a job does, as Markdown for Temporal UI's current details (design D13). Costs no history. */
export function jobRunDetails(
  { session, jobId, host, kind, label }: JobWorkflowInput,
  stopping: boolean,
  progress: JobProgress | undefined,
  ended: JobOutcome | undefined,
): string {
  const now = ended ?? { status: stopping ? ("stopping" as const) : ("running" as const) };
  const parts = [
    `**${statusLine(now)}** · \`${jobId}\` of session \`${session}\` on host \`${host}\``,
    `${kind}: ${oneLine(label, 500)}`,
  ];
  const output = outputOf(progress, ended);
  if (output !== undefined) parts.push(output);
  else if (ended === undefined) parts.push("Its newest output stands with the pending activity.");
  return parts.join("\n\n");
}

function outputOf(
  progress: JobProgress | undefined,
  ended: JobOutcome | undefined,
): string | undefined {
  const tails = ended?.tails ?? [];
  if (ended !== undefined && tails.length > 0) {
    const bytes = tails.map(({ stream, to }) => `${to} bytes of ${stream}`).join(", ");
    return [
      `Output: ${bytes}`,
      ...tails.filter(({ text }) => text !== "").map((tail) => fenced(tail.text)),
    ].join("\n\n");
  }
  if (ended?.output !== undefined) return fenced(ended.output);
  if (progress === undefined) return undefined;
  const { bytes, tail } = progress;
  return [`Output so far: ${bytes} bytes`, fenced(tail)].join("\n\n");
}

/** In a fence longer than any inside. */
function fenced(text: string): string {
  const shown = tailBytes(text, 2_048);
  const longest = Math.max(2, ...[...shown.matchAll(/`+/gu)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${shown}${shown.endsWith("\n") ? "" : "\n"}${fence}`;
}
