import type { JsonObject } from "../../contracts/header.js";
import type { JobView } from "../../contracts/session.js";
import { command, homeOption, jsonOption } from "../command.js";
import { usage } from "../parse.js";
import { jobStatus } from "../render/jobs.js";
import { shellLine } from "../shell-words.js";
import { jobIdOf } from "./jobs.js";
import { durationOf, sessionIdOf, settingsOf } from "./settings.js";

export const jobsStartCommand = command({
  name: "jobs start",
  summary: "Start a background job in a session",
  words: "<session> [-- command ...]",
  minWords: 1,
  maxWords: Infinity,
  options: {
    label: { type: "string", value: "text", help: "its name in lists (default: the first line)" },
    kind: { type: "string", value: "kind", help: "kind of job (default bash)" },
    input: { type: "string", value: "json", help: "what the kind is to do, instead of a command" },
    id: {
      type: "string",
      value: "id",
      help: "id of this request: the same id starts one job, so a repeat is safe",
    },
    ...jsonOption,
    ...homeOption,
  },
  details: [
    "One word after -- is a whole command line, as in -- 'cd web && npm test'; several are quoted so that the",
    "command gets them as they are. Prints the job's id, e.g. bash-1.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "jobs start");
    const kind = options.kind ?? "bash";
    const input = inputOf(words.slice(1), options.input);
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const started = await context.orStop(
      backend.session(id).startJob({
        kind,
        input,
        ...(options.label === undefined ? {} : { label: options.label }),
        ...(options.id === undefined ? {} : { id: options.id }),
      }),
    );
    io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session: id, id: started.id, kind }, undefined, 2)}\n`
        : `${started.id}\n`,
    );
    return 0;
  },
});

export const jobsKillCommand = command({
  name: "jobs kill",
  summary: "Ask a background job to stop",
  words: "<session> <job>",
  minWords: 2,
  options: {
    reason: { type: "string", value: "text", help: "kept in the log" },
    ...jsonOption,
    ...homeOption,
  },
  details: ["It is killed when its work has really ended: longhaul jobs wait tells."],
  async run(context, words, options) {
    const id = sessionIdOf(words, "jobs kill");
    const job = jobIdOf(words, "jobs kill");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const reason = options.reason === undefined ? {} : { reason: options.reason };
    const { result } = await context.orStop(backend.session(id).killJob(job, reason));
    const text = result === "requested" ? "is asked to stop" : "had already finished";
    context.io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session: id, id: job, result }, undefined, 2)}\n`
        : `job ${job} ${text}\n`,
    );
    return 0;
  },
});

/** As `timeout` of the shell says it. */
const timedOut = 124;

export const jobsWaitCommand = command({
  name: "jobs wait",
  summary: "Wait until a background job has ended",
  words: "<session> <job>",
  minWords: 2,
  options: {
    timeout: {
      type: "string",
      value: "time",
      help: "longest wait, like 90s or 10m (default: as long as it takes)",
    },
    ...jsonOption,
    ...homeOption,
  },
  details: [
    "Exit code 0 when the job completed, and with exit code 0 if it has one; 1 when it ended otherwise;",
    `${timedOut} when it still runs after --timeout. The session is told of its end all the same.`,
  ],
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "jobs wait");
    const jobId = jobIdOf(words, "jobs wait");
    const timeoutMs =
      options.timeout === undefined ? undefined : durationOf(options.timeout, "--timeout");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const waiting = backend
      .session(id)
      .waitJob(jobId, timeoutMs === undefined ? {} : { timeoutMs });
    const job = await context.orStop(waiting);
    io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session: id, ...job }, undefined, 2)}\n`
        : `job ${job.id} ${job.finishedAt === undefined ? "still runs" : "has ended"}: ${jobStatus(job)}\n`,
    );
    return exitCodeOf(job);
  },
});

function exitCodeOf({ status, detail, finishedAt }: JobView): number {
  if (finishedAt === undefined) return timedOut;
  const bad = detail !== undefined && /^exit code: (?!0$)/.test(detail);
  return status === "completed" && !bad ? 0 : 1;
}

function inputOf(words: readonly string[], json: string | undefined): JsonObject {
  const help = "longhaul jobs start --help";
  if (json === undefined) {
    const line = shellLine(words);
    if (line.trim() !== "") return { command: line };
    throw usage("jobs start expected -- and a command, or --input, got nothing", help);
  }
  if (words.length > 0) throw usage("jobs start takes a command or --input, not both", help);
  let input: unknown;
  try {
    input = JSON.parse(json);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw usage(`--input expected JSON (${why})`, help);
  }
  if (isObject(input)) return input;
  throw usage(`--input expected a JSON object, got ${JSON.stringify(input)}`, help);
}

/** Of a value that was read from JSON. */
function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
