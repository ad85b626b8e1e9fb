import type { JobView } from "../../contracts/session.js";
import { command, homeOption, jsonOption } from "../command.js";
import { usage } from "../parse.js";
import { oneLine } from "../render/clean.js";
import { durationText, jobStatus } from "../render/jobs.js";
import { tableLines } from "../render/table.js";
import { terminalOf } from "../render/terminal.js";
import { minuteOf, readTimeoutMs } from "./reading.js";
import { sessionIdOf, settingsOf } from "./settings.js";

export const jobsCommand = command({
  name: "jobs",
  summary: "List a session's background jobs",
  words: "<session>",
  minWords: 1,
  options: { ...jsonOption, ...homeOption },
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "jobs");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const view = await context.orStop(backend.session(id).jobs({ timeoutMs: readTimeoutMs }));
    if (options.json === true) {
      io.stdout.write(`${JSON.stringify({ session: id, ...view }, undefined, 2)}\n`);
      return 0;
    }
    if (view.jobs.length === 0) {
      io.stdout.write("no jobs\n");
      return 0;
    }
    const now = Date.now();
    const head = ["JOB", "KIND", "STATUS", "STARTED", "RAN FOR", "LABEL"];
    const rows = [head, ...view.jobs.map((job) => rowOf(job, now))];
    const terminal = terminalOf(io.stdout, io.env);
    for (const line of tableLines(rows, io.stdout.isTTY === true, terminal))
      io.stdout.write(`${line}\n`);
    return 0;
  },
});

/** The job a command names. Throws USAGE. */
export function jobIdOf(words: readonly string[], name: string): string {
  const id = words[1]?.trim();
  if (id === undefined || id === "")
    throw usage(`${name} expected <job>, got an empty word`, "longhaul jobs <session>");
  return id;
}

function rowOf(job: JobView, now: number): readonly string[] {
  const ran = durationText((job.finishedAt ?? now) - job.startedAt);
  return [job.id, job.kind, jobStatus(job), minuteOf(job.startedAt), ran, job.label].map(oneLine);
}
