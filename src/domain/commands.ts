import { refuse, type Refusal } from "../contracts/errors.js";
import type { NewEntry } from "../contracts/log.js";
import { commands } from "../contracts/names.js";
import type { ScheduleChangeResult } from "../contracts/schedule.js";
import type {
  CommandResult,
  CompactResult,
  JobKillResult,
  JobStartResult,
  InterruptResult,
  SendResult,
  TodoWriteResult,
} from "../contracts/session.js";
import { parseClose, parseConfigure, parseInterrupt, parseSend } from "./guards.js";
import { parseJobKill, parseJobStart } from "./job-commands.js";
import { decideClear, decideSend, pendingCount } from "./inbox.js";
import type { Session } from "./session.js";
import { askCompaction, parseCompact } from "./compaction-command.js";
import { livenessEntries } from "./place.js";
import { parseRebind, rebindSession, resumeSession, suspendSession } from "./place-commands.js";
import { decideScheduleChange } from "./schedule-change.js";
import { killJob, startJob } from "./session-jobs.js";
import { decideTodoWrite } from "./todo-command.js";

/**
 * The commands of a session (design D10), each total: bad input is a refusal, never a throw. The same function answers
 * an update and handles the signal of the same name; nothing is changed by a refused one.
 */

/** Puts a message in the inbox (spec/harness §2). The same id again gets the first verdict. */
export function sendMessage(session: Session, input: unknown): SendResult | Refusal {
  const parsed = parseSend(input);
  if (!parsed.ok) return parsed;
  const { id } = parsed.value;
  const decision = decideSend(session.folds.inbox, parsed.value, session.aborting);
  if (!decision.ok) return decision;
  if (decision.repeat) return { ok: true, id, seq: decision.seq };
  const gone = refusalOfState(session);
  if (gone !== undefined) return gone;
  // Its turn runs first; what is overdue and owed comes after it (spec/schedule C2).
  if (parsed.value.mode !== "inject") {
    const { place } = session.folds;
    session.record(...livenessEntries(place, { suspended: false }, "resumed by a message"));
  }
  return { ok: true, id, seq: session.record(decision.entry) };
}

/** Ends the running turn and keeps the inbox: what is queued waits for the next waking send. */
export function interrupt(session: Session, input: unknown): InterruptResult | Refusal {
  const parsed = parseInterrupt(commands.interrupt, input);
  if (!parsed.ok) return parsed;
  session.requestAbort(parsed.value.reason ?? "user", true);
  return { ok: true, result: session.active ? "requested" : "idle", removed: 0 };
}

/** Empties the inbox but for reminders, then ends the running turn; on an idle session it arms nothing. */
export function cancelAll(session: Session, input: unknown): InterruptResult | Refusal {
  const parsed = parseInterrupt(commands.cancel, input);
  if (!parsed.ok) return parsed;
  const before = pendingCount(session.folds.inbox);
  session.record(...decideClear(session.folds.inbox));
  const removed = before - pendingCount(session.folds.inbox);
  session.requestAbort(parsed.value.reason ?? "user", false);
  return { ok: true, result: session.active ? "requested" : "idle", removed };
}

/** Refuses new input and ends the running turn; the loop closes the session. A repeat is accepted. */
export function close(session: Session, input: unknown): CommandResult {
  const parsed = parseClose(input);
  if (!parsed.ok) return parsed;
  session.closing ??= parsed.value;
  session.requestAbort("disposed", true);
  return { ok: true };
}

/** Changes the configuration; effective at the next step. */
export function configure(session: Session, input: unknown): CommandResult {
  const gone = refusalOfState(session);
  if (gone !== undefined) return gone;
  const parsed = parseConfigure(input, session.config);
  if (!parsed.ok) return parsed;
  const { config, refreshTools } = parsed.value;
  const before = session.config;
  if (config !== undefined) session.record({ type: "session/config", data: { config } });
  // The description of `todo_write` says what the policy allows.
  session.refreshTools ||=
    refreshTools || session.config.allowParallelInProgress !== before.allowParallelInProgress;
  return { ok: true };
}

/** Replaces the todo list from outside the loop (spec/todo T1 to T4). */
export function writeTodos(session: Session, input: unknown): TodoWriteResult {
  const gone = refusalOfState(session);
  if (gone !== undefined) return gone;
  const { turn } = session.folds;
  const decision = decideTodoWrite(session.folds.todo, input, {
    allowParallelInProgress: session.config.allowParallelInProgress,
    openTurn: turn.open ? turn.number : undefined,
    nextSeq: session.log.lastSeq + 1,
  });
  session.record(...decision.events);
  return decision.result;
}

/** Stops the running turn and lets nothing open one until it is resumed (design D5). A repeat is accepted. */
export function suspend(session: Session): CommandResult {
  return refusalOfState(session) ?? suspendSession(session);
}

/** Ends a suspension. A session that is not suspended goes on as it is. */
export function resume(session: Session): CommandResult {
  return refusalOfState(session) ?? resumeSession(session);
}

export function rebind(session: Session, input: unknown): CommandResult {
  const parsed = parseRebind(input);
  if (!parsed.ok) return parsed;
  return refusalOfState(session) ?? rebindSession(session, parsed.value);
}

/** Creates or deletes a reminder from outside the loop (spec/schedule C1). The same `requestId` again gets the first verdict. */
export function changeSchedule(session: Session, input: unknown): ScheduleChangeResult | Refusal {
  const gone = refusalOfState(session);
  if (gone !== undefined) return gone;
  const config = session.scheduleConfig;
  if (config === undefined) {
    return refuse(
      "INVALID_INPUT",
      `session ${session.id} has no reminders; switch them on with \`schedule: true\` in its configuration`,
    );
  }
  const { result, events } = decideScheduleChange(session.folds.schedule, input, {
    now: session.now,
    config,
  });
  session.record(...(events as readonly NewEntry[]));
  return result;
}

/** Starts a background job of the session (spec/jobs §4). The same `opId` again answers the same job. */
export function startSessionJob(session: Session, input: unknown): JobStartResult {
  const parsed = parseJobStart(input);
  if (!parsed.ok) return parsed;
  const gone = refusalOfState(session);
  return gone ?? startJob(session, parsed.value);
}

/** Asks for the end of a job (spec/jobs J12). A closing session ends its jobs itself. */
export function killSessionJob(session: Session, input: unknown): JobKillResult {
  const parsed = parseJobKill(input);
  if (!parsed.ok) return parsed;
  const gone = refusalOfState(session);
  return gone ?? killJob(session, parsed.value.jobId, parsed.value.reason);
}

/** Asks for a compaction of an idle session (spec/harness §6); BUSY in any other. The same `opId` again gets the first verdict. */
export function compact(session: Session, input: unknown): CompactResult {
  const parsed = parseCompact(input);
  if (!parsed.ok) return parsed;
  return refusalOfState(session) ?? askCompaction(session, parsed.value.opId);
}

/**
 * Why a command would be refused before anything reaches history, for an update's validator. Only what cannot turn
 * out otherwise by the time the handler runs.
 */
export function refusalOf(session: Session, name: string, input: unknown): Refusal | undefined {
  const parsed = parseCommand(session, name, input);
  if (parsed !== undefined && !parsed.ok) return parsed;
  if (name === commands.send) {
    const sent = parseSend(input);
    if (sent.ok) {
      const decision = decideSend(session.folds.inbox, sent.value, false);
      if (!decision.ok) return decision;
      if (decision.repeat) return undefined;
    }
  }
  return name === commands.close ? undefined : refusalOfState(session);
}

function parseCommand(
  session: Session,
  name: string,
  input: unknown,
): { readonly ok: true } | Refusal | undefined {
  switch (name) {
    case commands.send:
      return parseSend(input);
    case commands.configure:
      return parseConfigure(input, session.config);
    case commands.close:
      return parseClose(input);
    case commands.jobStart:
      return parseJobStart(input);
    case commands.jobKill:
      return parseJobKill(input);
    case commands.compact:
      return parseCompact(input);
    case commands.rebind:
      return parseRebind(input);
    case commands.todoWrite:
    case commands.scheduleChange:
    case commands.suspend:
    case commands.resume:
      return undefined;
    default:
      return parseInterrupt(name, input);
  }
}

/** The entry that keeps a refused signal: nobody waits for its verdict. */
export function rejection(command: string, input: unknown, refusal: Refusal): NewEntry {
  const id = typeof input === "object" && input !== null && "id" in input ? input.id : undefined;
  return {
    type: "session/rejected",
    data: {
      command,
      ...(typeof id === "string" ? { id: id.slice(0, 200) } : {}),
      code: refusal.code,
      message: refusal.message.slice(0, 1_000),
    },
  };
}

function refusalOfState(session: Session): Refusal | undefined {
  if (session.fault !== undefined) {
    return refuse(
      "SESSION_FAULTED",
      `session ${session.id} is faulted and takes no input: ${session.fault.message}`,
    );
  }
  if (session.folds.closed || session.closing !== undefined) {
    return refuse("SESSION_CLOSED", `session ${session.id} is closed; create a new one`);
  }
  return undefined;
}
