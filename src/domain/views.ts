import { refuse, type Refusal } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import type { LogPage, LogQuery, Projections, SessionView, SurfacePage, SurfaceQuery } from "../contracts/session.js";
import type { Session } from "./session.js";
import { utf8Bytes } from "./guards.js";

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
            ...(end.reason.kind === "error" ? { code: end.reason.code, message: end.reason.message } : {}),
          },
        }),
  };
}

/** Entries after a `seq`, as many as fit a page. */
export function logPage(session: Session, query: LogQuery): LogPage {
  const { after, limit } = query;
  const entries: LogEntry[] = [];
  let bytes = 0;
  for (let seq = Math.max(0, after + 1); seq <= session.log.lastSeq && entries.length < limit; seq++) {
    const entry = session.log.entries[seq];
    if (entry === undefined) break;
    bytes += utf8Bytes(JSON.stringify(entry));
    if (entries.length > 0 && bytes > pageBytes) break;
    entries.push(entry);
  }
  return { entries, lastSeq: session.log.lastSeq, state: session.state() };
}

/** Surface nodes of a range, as many as fit a page. */
export function surfacePage(session: Session, query: SurfaceQuery): SurfacePage | Refusal {
  const { from, to } = query;
  const { surface } = session.log;
  if (!Number.isInteger(from) || !Number.isInteger(to) || from < 0 || to < from || to > surface.length) {
    return refuse("INVALID_INPUT", `session.surface expects a range within 0..${surface.length}, got ${from}..${to}`);
  }
  const nodes = [];
  let bytes = 0;
  for (const node of surface.nodes.slice(from, to)) {
    bytes += utf8Bytes(JSON.stringify(node));
    if (nodes.length > 0 && bytes > pageBytes) break;
    nodes.push(node);
  }
  return { nodes, length: surface.length };
}

/** The `todos` key is there exactly when the tool is in the table (spec/todo §4). */
export function projectionsOf(session: Session): Projections {
  const offered = session.folds.place.tools.some((tool) => tool.name === "todo_write");
  return { asOfSeq: session.log.lastSeq, values: offered ? { todos: session.folds.todo.todos } : {} };
}

function idOf(message: { readonly id: string }): string {
  return message.id;
}
