import { refuse, type Refusal } from "../contracts/errors.js";
import type { JobEffect, JobEntry, JobOwner, JobsConfig } from "../contracts/jobs.js";
import {
  isEnd,
  isLive,
  lastNumber,
  maxRecords,
  maxUnreadRecords,
  type JobRecord,
  type JobsState,
} from "./jobs.js";
import { jsonOf, limitReached, noController, noOwnerRegistry, strangeOwner } from "./job-texts.js";
import { fieldsOf } from "./fields.js";

/** What a start is judged by besides the jobs there are. */
export interface StartContext {
  readonly config: Pick<JobsConfig, "maxConcurrentJobsPerOwner">;
  /** The logged tool table holds the job tools (J26). */
  readonly served: boolean;
  /** Kinds the logged table knows; absent: any. */
  readonly kinds?: readonly string[];
  /** Tokens of the live owners by session id; absent: there is no registry of owners. */
  readonly owners?: { readonly [session: string]: string };
  readonly now: number;
  /** From workflow randomness, so that a reset that issues the id again meets another workflow (J2). */
  readonly nonce: string;
  /** Of the command that asks. */
  readonly opId?: string;
}

export interface StartDecision {
  readonly ok: true;
  readonly id: string;
  readonly entries: readonly JobEntry[];
  readonly effects: readonly JobEffect[];
}

/**
 * Starts a job, or says why not; a refusal burns no number (spec/jobs §4). `spec` may have any shape. The start of the
 * host comes after: what fails there is a settlement (J5).
 */
export function decideStart(
  state: JobsState,
  spec: unknown,
  owner: JobOwner | undefined,
  context: StartContext,
): StartDecision | Refusal {
  if (!context.served) return refuse("JOBS_UNAVAILABLE", noController);
  const { kind, label, outputLimitBytes, output } = fieldsOf(spec);
  if (typeof kind !== "string" || kind === "") {
    return refuse("INVALID_INPUT", "invalid job kind: expected a non-empty string");
  }
  if (context.kinds !== undefined && !context.kinds.includes(kind)) {
    const known = context.kinds.length === 0 ? "none" : context.kinds.join(", ");
    return refuse(
      "INVALID_INPUT",
      `unknown job kind ${JSON.stringify(kind)}; this session knows ${known}`,
    );
  }
  if (typeof label !== "string" || label === "") {
    return refuse("INVALID_INPUT", "invalid job label: expected a non-empty string");
  }
  if (outputLimitBytes !== undefined && !isPositiveInteger(outputLimitBytes)) {
    return refuse(
      "INVALID_INPUT",
      `invalid outputLimitBytes: expected a positive safe integer, got ${jsonOf(outputLimitBytes)}`,
    );
  }
  const stranger = ownerProblem(owner, context);
  if (stranger !== undefined) return refuse("JOBS_UNAVAILABLE", stranger);
  const { maxConcurrentJobsPerOwner } = context.config;
  if (liveCount(state, owner) >= maxConcurrentJobsPerOwner) {
    return refuse("JOB_LIMIT", limitReached(maxConcurrentJobsPerOwner));
  }

  const form = output === "final" ? "final" : "stream";
  const limit = outputLimitBytes;
  const { nonce } = context;
  const id = `${kind}-${lastNumber(state, kind) + 1}`;
  const owned = owner === undefined ? {} : { owner };
  return {
    ok: true,
    id,
    entries: [
      ...dropOldest(state),
      {
        type: "job/start",
        data: {
          id,
          kind,
          label,
          ...(limit === undefined ? {} : { limit }),
          startedAt: wholeTime(context.now),
          output: form,
          nonce,
          ...owned,
          ...(context.opId === undefined ? {} : { opId: context.opId }),
        },
      },
    ],
    effects: [
      {
        kind: "start-job",
        id,
        nonce,
        spec: {
          kind,
          label,
          output: form,
          ...(limit === undefined ? {} : { outputLimitBytes: limit }),
        },
        ...owned,
      },
    ],
  };
}

/** Live jobs of the exact owner, or of nobody: derived from the records, there is no second counter (spec/jobs §7). */
export function liveCount(state: JobsState, owner: JobOwner | undefined): number {
  return state.jobs.filter((job) => isLive(job) && job.owner?.token === owner?.token).length;
}

function ownerProblem(owner: JobOwner | undefined, { owners }: StartContext): string | undefined {
  if (owner === undefined) return undefined;
  if (owners === undefined) return noOwnerRegistry;
  const known = Object.hasOwn(owners, owner.session) ? owners[owner.session] : undefined;
  return known === owner.token ? undefined : strangeOwner(owner.session);
}

/** Room for one more record (J28). */
function dropOldest(state: JobsState): readonly JobEntry[] {
  const count = state.jobs.length + 1;
  if (count <= maxRecords) return [];
  const ended = state.jobs.filter((job) => isEnd(job.status));
  const told = ended.filter((job) => job.reported).slice(0, count - maxRecords);
  const unread = ended
    .filter((job) => !job.reported)
    .slice(0, Math.max(0, count - told.length - maxUnreadRecords));
  const ids = [...told, ...unread].map((job: JobRecord) => job.id);
  return ids.length === 0 ? [] : [{ type: "job/removed", data: { ids } }];
}

/** Epoch ms as an integer that is not negative. */
export function wholeTime(now: number): number {
  return Number.isFinite(now) ? Math.max(0, Math.floor(now)) : 0;
}

function isPositiveInteger(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1;
}
