import type { BodiesPage } from "../contracts/archive.js";
import type { Message } from "../contracts/content.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import { jobWorkflowId } from "../contracts/names.js";
import type {
  ArchivedNode,
  ArchivedUpTo,
  JobsView,
  LogPage,
  LogQuery,
  Projections,
  RemindersQuery,
  RemindersView,
  SessionView,
  SurfaceNode,
  SurfacePage,
  SurfaceQuery,
} from "../contracts/session.js";
import { listJobs, publicJob, snapshotOf } from "./job-views.js";
import { outcomeOf } from "./schedule-change.js";
import type { Session } from "./session.js";
import { deriveMessages } from "./surface.js";
import { describeValue, utf8Bytes } from "./guards.js";

/** Largest page of a query, UTF-8 bytes of JSON (design D2). */
export const pageBytes = 262_144;

export function viewOf(session: Session, title: string | undefined): SessionView {
  const { turn, place, inbox, todo, sessionHeader } = session.folds;
  const header = sessionHeader ?? { version: 0 as const, id: session.id, createdAt: 0 };
  const end = turn.lastEnd;
  return {
    id: session.id,
    state: session.state(),
    ready: place.ready,
    header,
    ...(title === undefined ? {} : { title }),
    config: session.config,
    ...(place.host === undefined ? {} : { host: place.host }),
    epoch: place.epoch,
    turn: { number: turn.number, open: turn.open, step: turn.step },
    inbox: { nextTurn: inbox.nextTurn.map(idOf), nextStep: inbox.nextStep.map(idOf) },
    todos: todo.todos,
    lastSeq: session.log.lastSeq,
    ...(end === undefined
      ? {}
      : {
          lastEnd: {
            turn: end.turn,
            kind: end.reason.kind,
            ...(end.reason.kind === "error"
              ? { code: end.reason.code, message: end.reason.message }
              : {}),
          },
        }),
  };
}

/** Entries after a `seq`, as many as fit a page. What a query leaves out counts as all. */
export function logPage(session: Session, query: LogQuery): LogPage {
  const after = Number.isInteger(query.after) ? query.after : -1;
  const limit = Number.isInteger(query.limit) ? Math.max(1, query.limit) : Infinity;
  const { log } = session;
  const from = Math.max(0, after + 1);
  const here = {
    lastSeq: log.lastSeq,
    state: session.state(),
  };
  if (from < log.firstSeq) return { entries: [], archived: archivedOf(session), ...here };
  const at = (seq: number): LogEntry | undefined => log.at(seq);
  return { entries: takePage(at, from, Math.min(limit, log.lastSeq + 1 - from)), ...here };
}

function archivedOf({ log, segment }: Session): ArchivedUpTo {
  return { to: log.firstSeq - 1, segment };
}

/** Surface nodes of a range, as many as fit a page. */
export function surfacePage(session: Session, query: SurfaceQuery): SurfacePage | Refusal {
  const { from, to } = query;
  const { surface } = session.log;
  if (
    !Number.isInteger(from) ||
    !Number.isInteger(to) ||
    from < 0 ||
    to < from ||
    to > surface.length
  ) {
    return refuse(
      "INVALID_INPUT",
      `session.surface expects a range within 0..${surface.length}, got ${describeValue(from)}..${describeValue(to)}`,
    );
  }
  const at = (position: number): SurfaceNode | ArchivedNode | undefined => {
    const node = surface.nodeAt(position);
    if (node !== undefined) return node;
    const seq = surface.seqAt(position);
    return seq === undefined ? undefined : { seq, archived: true };
  };
  return {
    nodes: takePage(at, from, to - from),
    length: surface.length,
    ...(session.segment === "" ? {} : { archived: archivedOf(session) }),
  };
}

/** Texts of the checkpoint that is being made, as many as fit a page. */
export function bodiesPage(session: Session, names: readonly string[]): BodiesPage {
  const bodies: { [name: string]: string } = {};
  let bytes = envelopeBytes;
  for (const [index, name] of names.entries()) {
    const json = session.leaving?.get(name);
    if (json === undefined) continue;
    bytes += utf8Bytes(json);
    if (index > 0 && bytes > pageBytes) return { bodies, left: names.slice(index) };
    bodies[name] = json;
  }
  return { bodies, left: [] };
}

/** Everything of a page but its items: brackets, length and state. */
const envelopeBytes = 256;

/** At most `limit` items from `from`, as JSON at most a page, but at least one when there is one. */
function takePage<T>(
  at: (index: number) => T | undefined,
  from: number,
  limit: number,
): readonly T[] {
  const page: T[] = [];
  let bytes = envelopeBytes;
  for (let index = from; page.length < limit; index++) {
    const item = at(index);
    if (item === undefined) break;
    bytes += utf8Bytes(JSON.stringify(item)) + 1;
    if (page.length > 0 && bytes > pageBytes) break;
    page.push(item);
  }
  return page;
}

/** The newest messages the model sees, as many as fit a page: for a person in Temporal UI. */
export function newestMessages(session: Session): readonly Message[] {
  const { nodes } = session.log.surface;
  let from = nodes.length;
  for (let bytes = envelopeBytes; from > 0; from--) {
    bytes += utf8Bytes(JSON.stringify(nodes[from - 1])) + 1;
    if (bytes > pageBytes) break;
  }
  return deriveMessages(nodes.slice(Math.min(from, Math.max(0, nodes.length - 1))));
}

/** The `todos` key is there exactly when the tool is in the table (spec/todo §4). */
export function projectionsOf(session: Session): Projections {
  const offered = session.folds.place.tools.some((tool) => tool.name === "todo_write");
  const { jobs } = session.folds;
  return {
    asOfSeq: session.log.lastSeq,
    values: {
      ...(offered ? { todos: session.folds.todo.todos } : {}),
      ...(Object.keys(jobs.counters).length === 0
        ? {}
        : { jobs: listJobs(jobs, session.id).map(publicJob) }),
    },
  };
}

/** Every job of the session, and what can be started. */
export function jobsView(session: Session): JobsView {
  const { jobs, place } = session.folds;
  return {
    jobs: jobs.jobs.map((job) => ({
      ...publicJob(snapshotOf(job)),
      output: job.form,
      reported: job.reported,
      workflowId: jobWorkflowId(session.id, job.id, job.nonce),
    })),
    kinds: place.jobKinds.map(({ kind }) => kind),
    state: session.state(),
  };
}

/** Reminders and, when it is asked for, the verdict on a change. */
export function remindersView(session: Session, query: RemindersQuery): RemindersView {
  const { schedule } = session.folds;
  const { records, fault } = schedule;
  const outcome = query.requestId === undefined ? undefined : outcomeOf(schedule, query.requestId);
  return {
    enabled: session.scheduleConfig !== undefined,
    records: fault === undefined ? records : [],
    live: session.folds.place.live,
    ...(fault === undefined ? {} : { fault }),
    ...(outcome === undefined ? {} : { outcome }),
  };
}

function idOf(message: { readonly id: string }): string {
  return message.id;
}
