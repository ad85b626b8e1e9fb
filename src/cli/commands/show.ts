import type { RemindersResult } from "../../client/session-reminders.js";
import type { SessionRecord } from "../../client/types.js";
import { LonghaulError } from "../../contracts/errors.js";
import type { PublicJob } from "../../contracts/jobs.js";
import type { SessionView } from "../../contracts/session.js";
import { modelName } from "../../config.js";
import type { Session } from "../backend.js";
import { command, homeOption, jsonOption } from "../command.js";
import { oneLine } from "../render/clean.js";
import { openJobLines } from "../render/jobs.js";
import { remindersJson, remindersText } from "../render/reminders.js";
import { pad, styled, terminalOf, type Terminal } from "../render/terminal.js";
import { todoLines } from "../render/todos.js";
import { wholeLine } from "../render/wrap.js";
import { endText, readTimeoutMs, secondOf } from "./reading.js";
import { sessionIdOf, settingsOf } from "./settings.js";

export const showCommand = command({
  name: "show",
  summary: "Show what a session is and does",
  words: "<session>",
  minWords: 1,
  options: { ...jsonOption, ...homeOption },
  details: [
    "How a session ended is what Temporal says. When nobody answers for it within 5 s, what Temporal knows is shown,",
    'with the reason on stderr; "live" is then false in JSON, and the exit code is 0. What Temporal has deleted is shown',
    "from the archive.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "show");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const session = backend.session(id);
    const record = await context.orStop(session.record());
    const end = endText(record);
    const view = await context.orStop(
      session.view({ timeoutMs: readTimeoutMs }).catch((error: unknown) => {
        if (!(error instanceof LonghaulError)) throw error;
        if (end === undefined && !silences.has(error.code)) throw error;
        return error;
      }),
    );
    const silent = view instanceof LonghaulError;
    const reminders = silent ? undefined : await context.orStop(remindersOf(session));
    const openJobs = silent ? [] : await context.orStop(openJobsOf(session));
    if (silent && end === undefined)
      io.stderr.write(`${view.code}: ${oneLine(view.message)}; shown is what Temporal knows\n`);
    const url = record.archived === true ? undefined : backend.sessionUrl(id);
    if (options.json === true) {
      const known = silent
        ? record
        : {
            ...view,
            openJobs,
            ...remindersJson(reminders),
            ...(end === undefined && record.archived !== true ? {} : endOf(record)),
          };
      const address = url === undefined ? {} : { temporalUi: url };
      io.stdout.write(
        `${JSON.stringify({ ...known, live: !silent && record.archived !== true, ...address }, undefined, 2)}\n`,
      );
      return 0;
    }
    const terminal = terminalOf(io.stdout, io.env);
    const lines = silent
      ? recordLines(record, url, terminal)
      : [
          ...viewLines(view, url, terminal, { end, reminders, archived: record.archived }),
          ...openJobLines(openJobs, terminal),
        ];
    for (const line of lines) io.stdout.write(`${line}\n`);
    return 0;
  },
});

/** None when a worker of an older build, or none any more, answers. */
async function openJobsOf(session: Session): Promise<readonly PublicJob[]> {
  try {
    const { values } = await session.projections({ timeoutMs: readTimeoutMs });
    return (values.jobs ?? []).filter((job) => job.finishedAt === undefined);
  } catch (error) {
    if (error instanceof LonghaulError) return [];
    throw error;
  }
}

/** Undefined when a worker of an older build, or none any more, answers. */
async function remindersOf(session: Session): Promise<RemindersResult | undefined> {
  try {
    return await session.reminders({ timeoutMs: readTimeoutMs });
  } catch (error) {
    if (error instanceof LonghaulError) return undefined;
    throw error;
  }
}

/** Codes that say that nobody answers for a session that is there. */
const silences: ReadonlySet<string> = new Set(["NO_WORKER", "SESSION_FAULTED"]);

function endOf(record: SessionRecord): Partial<SessionRecord> {
  const { state, status, closedAt, archived, failure } = record;
  return {
    state,
    status,
    ...(archived === true ? { archived } : {}),
    ...(closedAt === undefined ? {} : { closedAt }),
    ...(failure === undefined ? {} : { failure }),
  };
}

/** The overview of a session that nobody answers for. */
function recordLines(
  record: SessionRecord,
  url: string | undefined,
  terminal: Terminal,
): readonly string[] {
  return factLines(
    [
      ["Session", record.id],
      ["Title", record.title],
      ["State", endText(record) ?? record.state],
      ["Host", record.host],
      ["Started", secondOf(record.startedAt)],
    ],
    url,
    terminal,
  );
}

export interface Beside {
  /** How it ended when its log does not say. */
  readonly end?: string | undefined;
  readonly reminders?: RemindersResult | undefined;
  /** Temporal has deleted it. */
  readonly archived?: true | undefined;
}

/** The overview of a session, wrapped on a terminal but for addresses. */
export function viewLines(
  view: SessionView,
  url: string | undefined,
  terminal: Terminal,
  { end, reminders, archived }: Beside = {},
): readonly string[] {
  const { config, turn, inbox } = view;
  const waiting = inbox.nextTurn.length + inbox.nextStep.length;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["Session", view.id],
    ["Title", view.title],
    ["State", end ?? stateText(view)],
    ["Model", modelName(config.request)],
    ["Host", view.host],
    ["Workspace", config.cwd],
    ["Turn", turnText(view)],
    ["Waiting", waiting === 0 ? undefined : `${waiting} message${waiting === 1 ? "" : "s"}`],
    ["Reminders", remindersText(reminders)],
    ["Log", `${view.lastSeq + 1} entries${archived === true ? ", from the archive" : ""}`],
  ];
  const lines = factLines(facts, url, terminal);
  const todos = view.todos ?? [];
  return todos.length === 0 ? lines : [...lines, "", ...todoLines(todos, terminal)];

  function turnText({ lastEnd }: SessionView): string {
    if (turn.number === 0) return "none yet";
    if (turn.open)
      return `${turn.number}, step ${turn.step}, ${end === undefined ? "running" : "not finished"}`;
    if (lastEnd === undefined) return String(turn.number);
    const why = [lastEnd.code, lastEnd.message].filter((part) => part !== undefined).join(": ");
    return `${turn.number}, ended ${lastEnd.kind}${why === "" ? "" : ` (${why})`}`;
  }
}

/** The state, and what follows from it where that is not plain. */
function stateText({ state, ready, id, host = "its host" }: SessionView): string {
  if (!ready) return `${state} (its tools are not known yet)`;
  if (state === "suspended") return `suspended (longhaul resume ${id}, or a message, goes on)`;
  if (state === "cold") return `cold (host ${host} does not answer; reminders wait for it)`;
  return state;
}

function factLines(
  facts: readonly (readonly [string, string | undefined])[],
  url: string | undefined,
  terminal: Terminal,
): readonly string[] {
  const lines = facts.flatMap(([name, value]) =>
    value === undefined
      ? []
      : wholeLine(oneLine(value), terminal, 11).map((row, index) =>
          index === 0 ? styled(terminal, "bold", pad(name, 11)) + row : " ".repeat(11) + row,
        ),
  );
  return url === undefined
    ? lines
    : [...lines, styled(terminal, "bold", pad("Temporal", 11)) + url];
}
