import { isDeepStrictEqual } from "node:util";
import type { SessionClient } from "../../../src/client/session-client.js";
import type { LogEntry } from "../../../src/contracts/log.js";
import type { ScheduleView } from "../../../src/contracts/schedule.js";
import { fold, initialFolds, Session } from "../../../src/domain/session.js";
import { loadLog } from "../../../src/domain/log.js";
import { deriveMessages } from "../../../src/domain/surface.js";
import { jobsView, projectionsOf, remindersView, viewOf } from "../../../src/domain/views.js";

/** The session as its whole log alone makes it, in one go and without a server. */
export function pureSession(id: string, log: readonly LogEntry[]): Session {
  const loaded = loadLog(log);
  if (!loaded.ok) throw new Error(loaded.message);
  const entries = loaded.log.entries;
  return new Session(id, () => 0, undefined, {
    log: loaded.log,
    folds: entries.reduce(fold, initialFolds),
  });
}

/** What the live session shows of itself. */
export interface Shown {
  readonly log: readonly LogEntry[];
  readonly parts: { readonly [part: string]: unknown };
}

/** Everything at one moment: undefined when the session went on meanwhile. */
export async function showSession(session: SessionClient): Promise<Shown | undefined> {
  const { view, log, parts } = await readAll(session);
  const after = await session.view();
  return after.lastSeq === view.lastSeq && log.length === after.lastSeq + 1
    ? { log, parts }
    : undefined;
}

async function readAll(session: SessionClient) {
  const view = await session.view();
  const log: LogEntry[] = [];
  for await (const entry of session.log()) log.push(entry);
  const reminders = await session.reminders();
  const parts = {
    view,
    messages: await session.messages(),
    projections: await session.projections(),
    jobs: await session.jobs(),
    reminders: reminders.ok ? reminders.reminders.map(recordOf) : reminders,
  };
  return { view, log, parts };
}

/** Without what is computed when it is read. */
function recordOf(view: ScheduleView): unknown {
  return Object.fromEntries(
    Object.entries(view).filter(([key]) => key !== "state" && key !== "deliveryMode"),
  );
}

/** Where the live session is not what its log says. */
export function modelProblems(id: string, { log, parts }: Shown): string[] {
  const pure = pureSession(id, log);
  const expected: Shown["parts"] = {
    view: viewOf(pure, undefined),
    messages: deriveMessages(pure.log.surface.nodes),
    projections: projectionsOf(pure),
    jobs: jobsView(pure),
    reminders: remindersView(pure, {}).records,
  };
  return Object.entries(expected).flatMap(([part, value]) => {
    if (!(part in parts)) return [];
    const wanted: unknown = JSON.parse(JSON.stringify(value));
    const got: unknown = JSON.parse(JSON.stringify(parts[part]));
    return isDeepStrictEqual(got, wanted)
      ? []
      : [`${part} is ${JSON.stringify(got)}, by the log it is ${JSON.stringify(wanted)}`];
  });
}
