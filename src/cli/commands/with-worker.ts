import type { Backend, WorkerRequest } from "../backend.js";
import type { Context } from "../command.js";

/** How long a worker that was seen may take to answer before one is started here. */
const patienceMs = 8_000;

export interface Answered<T> {
  readonly value: T;
  /** A worker was started in this process; it ends with the command. */
  readonly ownWorker: boolean;
  /** Rejects when the worker of this process, if one was needed, fails. */
  readonly lost: Promise<never>;
}

export interface OwnWorker {
  readonly request: WorkerRequest;
  /** Start it without looking for another: it has something others lack. */
  readonly needed: boolean;
  /** Rejects when a worker of this process cannot do the work. */
  check(): Promise<void>;
}

/** Asks what a worker answers. Where none was seen, or the one that was does not answer, this process becomes it. */
export async function withWorker<T>(
  context: Context,
  backend: Backend,
  own: OwnWorker,
  ask: () => Promise<T>,
): Promise<Answered<T>> {
  const seen = !own.needed && (await context.orStop(backend.workerSeen()));
  // Before anything is opened that nobody could work on.
  if (!seen) await own.check();
  const answer = ask();
  answer.catch(() => undefined);
  if (seen) {
    if (await context.orStop(inTime(answer)))
      return { value: await answer, ownWorker: false, lost: never };
    await own.check();
  }
  const lost = failureOf(backend.startWorker(own.request));
  const value = await context.orStop(Promise.race([answer, lost]));
  return { value, ownWorker: true, lost };
}

async function inTime(answer: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  try {
    return await Promise.race([answer.then(() => true), later(patienceMs, timer.signal)]);
  } finally {
    timer.abort();
  }
}

/** Rejects when the worker fails, cannot be started, or ends by itself. */
export function failureOf(worker: ReturnType<Backend["startWorker"]>): Promise<never> {
  const lost = worker
    .then(({ done }) => done)
    .then(() => Promise.reject(new Error("the worker ended by itself")));
  lost.catch(() => undefined);
  return lost;
}

const never: Promise<never> = new Promise(() => undefined);

function later(ms: number, signal: AbortSignal): Promise<false> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  });
}
