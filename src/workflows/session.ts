import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  defineQuery,
  defineSignal,
  defineUpdate,
  log,
  setHandler,
  uuid4,
  workflowInfo,
} from "@temporalio/workflow";
import { isErrorCode, refuse, type Refusal } from "../contracts/errors.js";
import type { ScheduleChangeResult } from "../contracts/schedule.js";
import { commands, queries, signals } from "../contracts/names.js";
import type { LogQuery, RemindersQuery, SessionInput, SurfaceQuery } from "../contracts/session.js";
import {
  cancelAll,
  changeSchedule,
  close,
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
import { isLive } from "../domain/jobs.js";
import type { SessionPolicy } from "../domain/policy.js";
import { Session } from "../domain/session.js";
import { sessionInputProblem } from "../domain/session-input.js";
import { disposeJobs, payOwedWake, removeJobs, reportJob } from "../domain/session-jobs.js";
import { runTurn } from "../domain/turn.js";
import {
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
import { EffectPump } from "./pump.js";
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
): (input: SessionInput) => Promise<SessionResult> {
  // Not async: each promise that is pending while a session idles costs the worker 2 KB of stack (bench:memory).
  return (input) => {
    const problem = sessionInputProblem(input);
    if (problem !== undefined) throw failure(refuse("INVALID_INPUT", problem));
    const session = openLog(input);
    const console = createConsole(session, input);
    setHandlers(session, input, console.show);
    CancellationScope.current().cancelRequested.catch(() => {
      close(session, { reason: "cancelled through Temporal" });
    });
    return CancellationScope.nonCancellable(() => run(session, input, policy, console));
  };
}

async function run(
  session: Session,
  input: SessionInput,
  policy: SessionPolicy,
  console: Console,
): Promise<SessionResult> {
  const pump = new EffectPump(session, console);
  await condition(allHandlersFinished);
  await openTable(session, input.host);
  while (session.closing === undefined) {
    await condition(allHandlersFinished);
    pump.run();
    console.publish(session.state());
    if (session.shouldRun()) {
      await drive(session, runTurn(session, policy, Math.random), pump, console.show);
      payOwedWake(session);
    } else {
      await condition(
        () => session.shouldRun() || session.closing !== undefined || console.isStale() || pump.due,
      );
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

/** How long a closing session waits for the end of its jobs, ms (spec/jobs J11). */
const disposalMs = 60_000;

/** Owner disposal (spec/jobs §8): all jobs are asked to end, and what has not confirmed it in time is given up. */
async function endJobs(session: Session, pump: EffectPump): Promise<void> {
  if (session.folds.jobs.jobs.length === 0) return;
  disposeJobs(session);
  pump.run();
  const over = (): boolean => !session.folds.jobs.jobs.some(isLive);
  if (!over()) await condition(over, disposalMs);
  await condition(allHandlersFinished);
  removeJobs(session);
}

function openLog(input: SessionInput): Session {
  const { workflowId, startTime, firstExecutionRunId } = workflowInfo();
  const session = new Session(workflowId, () => Date.now(), {
    token: `${workflowId}:${firstExecutionRunId}`,
    nonce: () => uuid4().replaceAll("-", "").slice(0, 12),
  });
  const { config, parentSession } = input;
  session.record({
    type: "session/open",
    data: {
      config,
      header: {
        version: 0,
        id: workflowId,
        createdAt: startTime.getTime(),
        ...(config.cwd === undefined ? {} : { cwd: config.cwd }),
        ...(parentSession === undefined ? {} : { parentSession }),
      },
    },
  });
  return session;
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
  [commands.scheduleChange, changeSchedule],
  [commands.jobStart, startSessionJob],
  [commands.jobKill, killSessionJob],
];

/** Whose signals may carry an array of them (design D10). */
const batched = new Set<string>([commands.send, commands.todoWrite, commands.scheduleChange]);

/** Each command as an update, for callers who need the verdict, and as a signal of the same name. */
function setHandlers(session: Session, input: SessionInput, show: () => void): void {
  for (const [name, command] of handlers) {
    const handle = (argument: unknown): ReturnType<Command> => {
      const verdict = command(session, argument);
      show();
      return verdict;
    };
    setHandler(defineUpdate<ReturnType<Command>, [unknown]>(name), handle, {
      validator: (argument) => {
        const refusal = refusalOf(session, name, argument);
        if (refusal !== undefined) throw failure(refusal);
      },
    });
    setHandler(defineSignal<[unknown]>(name), (argument) => {
      const many = batched.has(name) && Array.isArray(argument);
      for (const one of many ? argument : [argument]) {
        const before = session.log.lastSeq;
        const verdict = handle(one);
        if (!verdict.ok && session.log.lastSeq === before && isErrorCode(verdict.code))
          session.record(rejection(name, one, { ...verdict, code: verdict.code }));
      }
    });
  }
  setHandler(defineSignal<[unknown]>(signals.jobReport), (report) => {
    for (const line of reportJob(session, report)) log.warn(`session ${session.id}: ${line}`);
    show();
  });
  setHandler(defineQuery(queries.view), () => viewOf(session, input.title));
  setHandler(defineQuery(queries.log), (query?: LogQuery) =>
    logPage(session, query ?? { after: -1, limit: 1_000 }),
  );
  setHandler(defineQuery(queries.messages), () => newestMessages(session));
  setHandler(defineQuery(queries.surface), (query?: SurfaceQuery) =>
    surfacePage(session, query ?? { from: 0, to: session.log.surface.length }),
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
