import {
  QueryNotRegisteredError,
  type Client,
  type Connection,
  type WorkflowExecutionDescription,
  type WorkflowExecutionStatusName,
} from "@temporalio/client";
import { isErrorCode, LonghaulError, type ErrorCode } from "../contracts/errors.js";
import type { QueryOfEnded } from "../contracts/session.js";
import { attemptUntil, type Bounded, type Trouble } from "./attempts.js";
import { classifyFailure, isAskedTooEarly } from "./failures.js";
import { KeyedQueue } from "./keyed-queue.js";
import { summarize } from "./list.js";
import type { SessionRecord } from "./types.js";
import { UndecidedError } from "./undecided.js";
import { updateIdOf } from "./update-id.js";
import { failureOf } from "./workflow-failure.js";

export interface QueryOptions {
  readonly signal?: AbortSignal;
  /** Deadline, ms; default the client's. */
  readonly timeoutMs?: number;
  /** Longest single attempt, ms. */
  readonly attemptMs?: number;
}

export interface SessionRunStatus {
  readonly open: boolean;
  readonly status: WorkflowExecutionStatusName;
}

/** Calls of one session over Temporal: deadlines, retries and errors are settled here (design D10, D17). */
export interface Wire {
  query<T>(session: string, name: string, args: unknown, options?: QueryOptions): Promise<T>;
  /**
   * One write in flight per session; a repeat with the same command, id and payload is the same update. UndecidedError when
   * it was sent and nobody answered.
   */
  update<T>(session: string, name: string, callerId: string, payload: unknown): Promise<T>;
  /** Accepted by the server, which keeps it until a worker takes it. */
  signal(session: string, name: string, payload: unknown): Promise<void>;
  /** Undefined when there is no such session. */
  status(session: string): Promise<SessionRunStatus | undefined>;
  /** SESSION_NOT_FOUND when there is no such session. */
  record(session: string): Promise<SessionRecord>;
}

export class TemporalWire implements Wire {
  readonly #client: Client;
  readonly #connection: Connection;
  readonly #bounds: Bounded;
  readonly #timeoutMs: number;
  readonly #writes = new KeyedQueue();

  constructor(client: Client, connection: Connection, bounds: Bounded, timeoutMs: number) {
    this.#client = client;
    this.#connection = connection;
    this.#bounds = bounds;
    this.#timeoutMs = timeoutMs;
  }

  async query<T>(
    session: string,
    name: string,
    args: unknown,
    options: QueryOptions = {},
  ): Promise<T> {
    const timeoutMs = options.timeoutMs ?? this.#timeoutMs;
    const handle = this.#client.workflow.getHandle(session);
    let asked = args;
    const asking = attemptUntil(
      this.#bounds,
      {
        deadline: Date.now() + timeoutMs,
        ...(options.attemptMs === undefined ? {} : { attemptMs: options.attemptMs }),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
        gone: () => this.#gone(session),
        late: (last) => this.#late(session, last, timeoutMs),
      },
      async () => {
        const answer = await handle
          .query<T, [unknown]>(name, asked)
          .catch(async (error: unknown) => {
            if (isAskedTooEarly(error)) asked = await this.#asOfEnd(session, args);
            throw error;
          });
        const refusal = refusalIn(answer);
        if (refusal !== undefined) throw refusal;
        return answer;
      },
    );
    try {
      return await asking;
    } catch (error) {
      // It failed before it could answer anything: its own failure says why.
      if (!(error instanceof LonghaulError && error.cause instanceof QueryNotRegisteredError))
        throw error;
      const record = await this.record(session);
      if (record.closedAt === undefined) throw error;
      throw new LonghaulError(record.failure?.code ?? "SESSION_CLOSED", endText(record), {
        cause: error,
      });
    }
  }

  async update<T>(session: string, name: string, callerId: string, payload: unknown): Promise<T> {
    const updateId = updateIdOf(name, callerId, payload);
    const handle = this.#client.workflow.getHandle(session);
    // Waiting behind another write counts: the caller's deadline is the caller's.
    const deadline = Date.now() + this.#timeoutMs;
    return this.#write(
      session,
      () => handle.executeUpdate<T, [unknown]>(name, { updateId, args: [payload] }),
      { deadline, effect: `sending it again under the same id (${callerId}) is safe` },
    );
  }

  async signal(session: string, name: string, payload: unknown): Promise<void> {
    const handle = this.#client.workflow.getHandle(session);
    const deadline = Date.now() + this.#timeoutMs;
    return this.#write(session, () => handle.signal<[unknown]>(name, payload), { deadline });
  }

  async #write<T>(
    session: string,
    call: () => Promise<T>,
    { deadline, effect }: { readonly deadline: number; readonly effect?: string },
  ): Promise<T> {
    const unsent = "an earlier write to it was waited for; nothing was changed";
    const unsure = ["it may still be carried out", effect].filter((part) => part !== undefined);
    let sent = false;
    try {
      return await this.#writes.run(session, () =>
        attemptUntil(
          this.#bounds,
          {
            deadline,
            // One that waited behind another write is not sent in its last moment: then it is certain that it was not.
            leastMs: Math.min(50, this.#timeoutMs / 10),
            gone: () => this.#gone(session),
            late: async (last) => {
              if (!sent) return this.#late(session, last, this.#timeoutMs, unsent);
              const { code, message } = await this.#late(
                session,
                last,
                this.#timeoutMs,
                unsure.join("; "),
              );
              return new UndecidedError(code, message);
            },
          },
          () => {
            sent = true;
            return call();
          },
        ),
      );
    } catch (error) {
      if (sent && error instanceof LonghaulError && error.code === "ABORTED")
        throw new UndecidedError(error.code, error.message, { cause: error });
      throw error;
    }
  }

  async status(session: string): Promise<SessionRunStatus | undefined> {
    try {
      const { status } = await this.#describe(session);
      return { open: status.name === "RUNNING" || status.name === "PAUSED", status: status.name };
    } catch (error) {
      if (error instanceof LonghaulError && error.code === "SESSION_NOT_FOUND") return undefined;
      throw error;
    }
  }

  async record(session: string): Promise<SessionRecord> {
    const info = await this.#describe(session);
    const failure =
      info.status.name === "FAILED"
        ? await failureOf(this.#client, this.#bounds, session, this.#timeoutMs)
        : undefined;
    return {
      ...summarize(info),
      status: statusOf(info.status.name),
      ...(failure === undefined
        ? {}
        : {
            failure: {
              ...(isErrorCode(failure.type) ? { code: failure.type } : {}),
              message: failure.message,
            },
          }),
    };
  }

  #describe(session: string): Promise<WorkflowExecutionDescription> {
    const handle = this.#client.workflow.getHandle(session);
    return attemptUntil(
      this.#bounds,
      {
        deadline: Date.now() + this.#timeoutMs,
        gone: () => Promise.resolve(notFound(session)),
        late: (last) => this.#late(session, last, this.#timeoutMs),
      },
      () => handle.describe(),
    );
  }

  /** What to ask with when a run that has ended has no next task to wait for. */
  async #asOfEnd(session: string, args: unknown): Promise<unknown> {
    const status = await this.status(session);
    if (status === undefined || status.open) return args;
    const ended: QueryOfEnded = { ended: true };
    return typeof args === "object" ? { ...args, ...ended } : ended;
  }

  async #gone(session: string): Promise<LonghaulError | undefined> {
    const status = await this.status(session);
    if (status === undefined) return notFound(session);
    if (status.open) return undefined;
    if (status.status === "FAILED") {
      const end = endText(await this.record(session));
      return new LonghaulError("SESSION_CLOSED", `${end}; it takes nothing any more`);
    }
    return closedError(session, status.status);
  }

  async #late(
    session: string,
    last: Trouble,
    timeoutMs: number,
    effect?: string,
  ): Promise<LonghaulError> {
    const within = `within ${timeoutMs / 1000} s`;
    const say = (code: ErrorCode, ...parts: readonly (string | undefined)[]) =>
      new LonghaulError(code, parts.filter((part) => part !== undefined).join("; "));
    if (last.why === "transport" || !(await this.#serverAnswers())) {
      const silence = `Temporal did not answer ${within} for session ${session} (${last.message})`;
      return say("TEMPORAL_UNREACHABLE", silence, effect);
    }
    if (last.why === "task") {
      const fault = `session ${session} cannot answer: its workflow task fails on the worker (${last.message})`;
      return say("SESSION_FAULTED", fault, "Temporal UI shows the cause", effect);
    }
    const silence = `no worker answered for session ${session} ${within}`;
    return say("NO_WORKER", silence, "start one (longhaul worker)", effect);
  }

  /** Is silence the worker's, or the server's? */
  async #serverAnswers(): Promise<boolean> {
    try {
      await this.#connection.withDeadline(Date.now() + 1000, () =>
        this.#connection.workflowService.getSystemInfo({}),
      );
      return true;
    } catch (error) {
      return classifyFailure(error).kind !== "retry";
    }
  }
}

/** A query never throws on the session's side: it answers a refusal as a value (design D17). */
function refusalIn(answer: unknown): LonghaulError | undefined {
  if (typeof answer !== "object" || answer === null || !("ok" in answer) || answer.ok !== false)
    return undefined;
  if (!("code" in answer) || !("message" in answer) || !isErrorCode(answer.code)) return undefined;
  return new LonghaulError(answer.code, String(answer.message));
}

export function notFound(session: string): LonghaulError {
  return new LonghaulError("SESSION_NOT_FOUND", `there is no session ${session} in this namespace`);
}

function closedError(session: string, status: WorkflowExecutionStatusName): LonghaulError {
  const how = status === "COMPLETED" ? "is closed" : `has ended (${status.toLowerCase()})`;
  return new LonghaulError(
    "SESSION_CLOSED",
    `session ${session} ${how} and takes nothing any more; its log can still be read`,
  );
}

/** How and when a session ended, and why if it says so, e.g. `session s has ended (terminated, 2026-01-01T00:00:00.000Z)`. */
export function endText({ id, status, closedAt, failure }: SessionRecord): string {
  const when = closedAt === undefined ? "" : `, ${new Date(closedAt).toISOString()}`;
  const why = failure === undefined ? "" : `: ${failure.message}`;
  return `session ${id} has ended (${status}${when})${why}`;
}

function statusOf(status: WorkflowExecutionStatusName): SessionRecord["status"] {
  switch (status) {
    case "COMPLETED":
      return "closed";
    case "TERMINATED":
      return "terminated";
    case "CANCELLED":
      return "canceled";
    case "FAILED":
      return "failed";
    case "TIMED_OUT":
      return "timed-out";
    default:
      return "open";
  }
}
