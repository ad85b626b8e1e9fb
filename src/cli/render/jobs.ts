import type { PublicJob } from "../../contracts/jobs.js";
import { oneLine } from "./clean.js";
import { fit, glyphsOf, styled, type Terminal } from "./terminal.js";

/** `running`, `completed, exit code: 0`: what a job is, clean and on one line. */
export function jobStatus({ status, detail }: Pick<PublicJob, "status" | "detail">): string {
  return detail === undefined ? status : oneLine(`${status}, ${detail}`);
}

/** How long something took, to its two largest units: `7s`, `2m 5s`, `3h 0m`, `4d 1h`. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const units = [
    ["d", Math.floor(seconds / 86_400)],
    ["h", Math.floor(seconds / 3_600) % 24],
    ["m", Math.floor(seconds / 60) % 60],
    ["s", seconds % 60],
  ] as const;
  const first = units.findIndex(([, count]) => count > 0);
  const shown = first === -1 ? units.slice(-1) : units.slice(first, first + 2);
  return shown.map(([unit, count]) => `${count}${unit}`).join(" ");
}

/** The jobs that have not ended, below a heading; nothing when there are none. */
export function openJobLines(jobs: readonly PublicJob[], terminal: Terminal): readonly string[] {
  if (jobs.length === 0) return [];
  const { ellipsis } = glyphsOf(terminal);
  return [
    "",
    `${styled(terminal, "bold", "Jobs")}  ${styled(terminal, "dim", `${jobs.length} open`)}`,
    ...jobs.map((job) =>
      fit(`  ${job.id}  ${jobStatus(job)}  ${oneLine(job.label)}`, terminal.columns, ellipsis),
    ),
  ];
}
