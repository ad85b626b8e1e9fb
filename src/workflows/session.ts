import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  defineQuery,
  defineUpdate,
  log,
  setHandler,
  uuid4,
  workflowInfo,
} from "@temporalio/workflow";
import type { BodiesQuery } from "../contracts/archive.js";
import { isErrorCode, refuse, type Refusal } from "../contracts/errors.js";
import type { ScheduleChangeResult } from "../contracts/schedule.js";
import { commands, queries, signals } from "../contracts/names.js";
import type { LogQuery, RemindersQuery, SessionInput, SurfaceQuery } from "../contracts/session.js";
import {
  cancelAll,
  changeSchedule,
  close,
  compact,
  configure,
  interrupt,
  killSessionJob,
  rebind,
  refusalOf,
  rejection,
  resume,
  sendMessage,
  startSessionJob,
  suspend,
  writeTodos,
} from "../domain/commands.js";
import { compactAsked } from "../domain/compaction.js";
import { isLive } from "../domain/jobs.js";
import type { SessionPolicy } from "../domain/policy.js";
import { restoreSession } from "../domain/checkpoint-restore.js";
import { Session, type SessionNames } from "../domain/session.js";
import { sessionInputProblem } from "../domain/session-input.js";
import { disposeJobs, payOwedWake, removeJobs, reportJob } from "../domain/session-jobs.js";
import { runTurn } from "../domain/turn.js";
import {
  bodiesPage,
  jobsView,
  logPage,
  newestMessages,
  projectionsOf,
  remindersView,
  surfacePage,
  viewOf,
} from "../domain/views.js";
import { createConsole, type Console } from "./console.js";
import { drive } from "./driver.js";
import { passing, type Moment } from "./moment.js";
import { EffectPump } from "./pump.js";
import { fetchBodies, RollOver } from "./roll-over.js";
import { setSignalHandlers } from "./signal-handlers.js";
import { openTable } from "./tool-table.js";

/** What a closed session returns; everything else is in its log. */
export interface SessionResult {
  readonly turns: number;
  readonly lastSeq: number;
}

/**
 * Makes the session workflow for a policy (design D1, D10).
 *
 * Invariants:
 * 1. All handlers are set before the first await; they are synchronous and never throw.
 * 2. Handlers only record; the one loop below opens turns. It is the only lock.
 * 3. After every wait of the loop all handlers have finished before its next command (facts §0.11).
 * 4. A cancellation of the workflow closes the session; nothing is lost by it.
 */
export function createSession(
  policy: SessionPolicy,
): (input: SessionInput, moment?: Moment) => Promise<SessionResult> {
  // Not async: each promise that is pending while a session idles costs the worker 2 KB of stack (bench:memory).
  return (input, moment = passing) => {
    const problem = sessionInputProblem(input);
    const goesOn = input.checkpoint !== undefined && input.seed === undefined;
    if (problem !== undefined && !goesOn) throw failure(refuse("INVALID_INPUT", problem));
    const { session, missing } = openLog(input, moment);
    const console = createConsole(session, input);
    CancellationScope.current().cancelRequested.catch(() => {
      close(session, { reason: "cancelled through Temporal" });
    });
    return CancellationScope.nonCancellable(() => {
      const pump = new EffectPump(session, console);
      const rollOver = new RollOver(session, pump, input, moment);
      setHandlers(session, input, rollOver, console.show);
      return run({ session, missing, input, policy, console, pump, rollOver });
    });
  };
}

interface Parts {
  readonly session: Session;
  /** Names of the texts that its checkpoint left out. */
  readonly missing: readonly string[];
  readonly input: SessionInput;
  readonly policy: SessionPolicy;
  readonly console: Console;
  readonly pump: EffectPump;
  readonly rollOver: RollOver;
}

async function run(parts: Parts): Promise<SessionResult> {
  const { session, input, policy, console, pump, rollOver } = parts;
  await condition(allHandlersFinished);
  await fetchBodies(session, parts.missing);
  if (!session.frozen && !session.folds.place.ready) await openTable(session, input.host);
  let stepped = false;
  while (session.closing === undefined || isInTurn(session) || isAsked(session)) {
    await condition(allHandlersFinished);
    pump.run();
    console.publish(session.state());
    const runs = session.shouldRun() || isInTurn(session);
    if (isAsked(session)) {
      await drive(session, compactAsked(session), pump, console.show);
      payOwedWake(session);
    } else if (rollOver.due && (stepped || !runs)) await rollOver.run();
    else if (runs) {
      stepped = true;
      const turn = runTurn(session, policy, Math.random, () => rollOver.due);
      await drive(session, turn, pump, console.show);
      if (!isInTurn(session)) payOwedWake(session);
    } else {
      const moves = (): boolean =>
        session.shouldRun() ||
        isAsked(session) ||
        session.closing !== undefined ||
        console.isStale() ||
        pump.due ||
        rollOver.due;
      const { waitMs } = rollOver;
      if (waitMs === undefined) await condition(() => moves() || rollOver.waitMs !== undefined);
      else await condition(moves, waitMs);
    }
  }
  await condition(allHandlersFinished);
  await endJobs(session, pump);
  await pump.stop();
  const { reason } = session.closing;
  session.record({ type: "session/close", data: reason === undefined ? {} : { reason } });
  console.publish("closed");
  await condition(allHandlersFinished);
  return { turns: session.folds.turn.number, lastSeq: session.log.lastSeq };
}

/** A turn stands at a step edge, to be gone on with. */
function isInTurn(session: Session): boolean {
  return session.folds.turn.open && !session.frozen;
}

/** A compaction was asked for from outside; one that came while the run before was leaving travelled along. */
function isAsked(session: Session): boolean {
  return session.compacting && !session.folds.turn.open && !session.frozen;
}

/** How long a closing session waits for the end of its jobs, ms (spec/jobs J11). */
const disposalMs = 60_000;

/** Owner disposal (spec/jobs §8): all jobs are asked to end, and what has not confirmed it in time is given up. */
async function endJobs(session: Session, pump: EffectPump): Promise<void> {
  if (session.frozen || session.folds.jobs.jobs.length === 0) return;
  disposeJobs(session);
  pump.run();
  const over = (): boolean => !session.folds.jobs.jobs.some(isLive);
  if (!over()) await condition(over, disposalMs);
  await condition(allHandlersFinished);
  removeJobs(session);
}

function openLog(
  input: SessionInput,
  moment: Moment,
): {
  readonly session: Session;
  readonly missing: readonly string[];
} {
  const { workflowId, startTime, firstExecutionRunId } = workflowInfo();
  const now = (): number => moment.now;
  const names: SessionNames = {
    token: `${workflowId}:${firstExecutionRunId}`,
    nonce: () => uuid4().replaceAll("-", "").slice(0, 12),
  };
  const { config, parentSession, checkpoint, seed } = input;
  const { session, missing } =
    checkpoint === undefined
      ? { session: new Session(workflowId, now, names), missing: [] }
      : restoreSession(checkpoint, { id: workflowId, now, names, config });
  if (checkpoint !== undefined && seed === undefined) return { session, missing };
  session.record({
    type: "session/open",
    data: {
      config,
      header: session.folds.sessionHeader ?? {
        version: 0,
        id: workflowId,
        createdAt: startTime.getTime(),
        ...(config.cwd === undefined ? {} : { cwd: config.cwd }),
        ...(parentSession === undefined ? {} : { parentSession }),
      },
    },
  });
  return { session, missing };
}

type Command = (
  session: Session,
  input: unknown,
) => { readonly ok: true } | Refusal | ScheduleChangeResult;

const handlers: readonly (readonly [name: string, command: Command])[] = [
  [commands.send, sendMessage],
  [commands.interrupt, interrupt],
  [commands.cancel, cancelAll],
  [commands.close, close],
  [commands.configure, configure],
  [commands.todoWrite, writeTodos],
  [commands.suspend, suspend],
  [commands.resume, resume],
  [commands.rebind, rebind],
  [commands.compact, compact],
  [commands.scheduleChange, changeSchedule],
  [commands.jobStart, startSessionJob],
  [commands.jobKill, killSessionJob],
];

/** Whose signals may carry an array of them (design D10). */
const batched = new Set<string>([commands.send, commands.todoWrite, commands.scheduleChange]);

/** Each command as an update, for callers who need the verdict, and as a signal of the same name. */
function setHandlers(
  session: Session,
  input: SessionInput,
  rollOver: RollOver,
  show: () => void,
): void {
  const handle = (command: Command, argument: unknown): ReturnType<Command> => {
    const verdict = command(session, argument);
    show();
    return verdict;
  };
  const told = new Map<string, (argument: unknown) => void>();
  for (const [name, command] of handlers) {
    told.set(name, (argument) => {
      rollOver.countSignal();
      const many = batched.has(name) && Array.isArray(argument);
      for (const one of many ? argument : [argument]) {
        const before = session.log.lastSeq;
        const verdict = handle(command, one);
        if (!verdict.ok && session.log.lastSeq === before && isErrorCode(verdict.code))
          session.record(rejection(name, one, { ...verdict, code: verdict.code }));
      }
    });
  }
  told.set(signals.rollOver, () => rollOver.ask());
  told.set(signals.jobReport, (report) => {
    rollOver.countSignal();
    for (const line of reportJob(session, report)) log.warn(`session ${session.id}: ${line}`);
    show();
  });
  setSignalHandlers(told);
  for (const [name, command] of handlers) {
    const answer = (argument: unknown): ReturnType<Command> => {
      rollOver.countUpdate();
      return handle(command, argument);
    };
    setHandler(defineUpdate<ReturnType<Command>, [unknown]>(name), answer, {
      validator: (argument) => {
        const refusal = refusalOf(session, name, argument);
        if (refusal !== undefined) throw failure(refusal);
      },
    });
  }
  setHandler(defineQuery(queries.view), () => viewOf(session, input.title));
  setHandler(defineQuery(queries.log), (query?: LogQuery) =>
    logPage(session, query ?? { after: -1, limit: 1_000 }),
  );
  setHandler(defineQuery(queries.messages), () => newestMessages(session));
  setHandler(defineQuery(queries.surface), (query?: SurfaceQuery) =>
    surfacePage(session, query ?? { from: 0, to: session.log.surface.length }),
  );
  setHandler(defineQuery(queries.bodies), (query?: BodiesQuery) =>
    bodiesPage(session, query?.names ?? []),
  );
  setHandler(defineQuery(queries.projections), () => projectionsOf(session));
  setHandler(defineQuery(queries.jobs), () => jobsView(session));
  setHandler(defineQuery(queries.reminders), (query?: RemindersQuery) =>
    remindersView(session, query ?? {}),
  );
}

function failure(refusal: Refusal): ApplicationFailure {
  return ApplicationFailure.create({
    type: refusal.code,
    message: refusal.message,
    nonRetryable: true,
  });
}
