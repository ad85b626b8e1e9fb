import type { JobKindRow } from "../contracts/jobs.js";
import { LonghaulError } from "../contracts/errors.js";
import type { Store } from "../contracts/store.js";
import type { JobKindDefinition } from "../tools/define-job-kind.js";
import { beginBody, followBody } from "./body-jobs.js";
import { countLiveBodies } from "./body-spool.js";
import type {
  BeginJob,
  BegunJob,
  EndedJob,
  FollowedJob,
  FollowKind,
  SweepQuestions,
} from "./following.js";
import { beginShell, followShell, shellKind, sweepShell } from "./shell-jobs.js";
import { sweepBodies } from "./sweep-bodies.js";

export interface JobHostOptions {
  /** Data directory of this host. */
  readonly home: string;
  /** This host's id, for texts. */
  readonly host: string;
  readonly store: Store;
  readonly kinds?: readonly JobKindDefinition[];
  /** Live jobs of this host above which none is begun. */
  readonly maxJobs: number;
}

/** The jobs of this host: shell jobs, and those of kinds that were declared with `defineJobKind`. */
export interface JobHost {
  /** `bash` first. */
  readonly kinds: readonly JobKindRow[];
  /** Begins a job once, however often it is called. Rejects only when the data directory cannot be written. */
  begin(job: BeginJob): Promise<BegunJob>;
  /** Attaches to a job that was begun, also when it has ended; never begins one. */
  follow(job: FollowKind): FollowedJob;
  /** Ends the jobs that nobody follows and whose workflow is closed, and removes what is a week old (spec/jobs J23). */
  sweep(questions: SweepQuestions): Promise<readonly EndedJob[]>;
}

/** Throws INVALID_CONFIG for a kind that is given twice. */
export function createJobHost(options: JobHostOptions): JobHost {
  const { kinds = [] } = options;
  const byName = new Map<string, JobKindDefinition>();
  for (const kind of kinds) {
    const { kind: name } = kind.jobKind;
    if (name === shellKind.kind || byName.has(name)) {
      const by = name === shellKind.kind ? "the built-in one" : "another one";
      throw new LonghaulError(
        "INVALID_CONFIG",
        `the job kind ${name} is taken by ${by}; choose another name`,
      );
    }
    byName.set(name, kind);
  }
  const bodies = { ...options, kinds: byName };
  return {
    kinds: [shellKind, ...kinds.map(({ jobKind }) => jobKind)],
    async begin(job) {
      if (job.kind === shellKind.kind) {
        const others = await countLiveBodies(options.home);
        const begun = await beginShell(job, { ...options, maxJobs: options.maxJobs - others });
        return begun.kind === "full" ? { kind: "full", jobs: begun.jobs + others } : begun;
      }
      const definition = byName.get(job.kind);
      if (definition === undefined) {
        const known = [shellKind.kind, ...byName.keys()].join(", ");
        return {
          kind: "refused",
          reason: `host ${options.host} has no job kind ${job.kind}; it has ${known}`,
        };
      }
      return await beginBody(job, bodies, definition);
    },
    follow: (job) =>
      job.kind === shellKind.kind ? followShell(job, options) : followBody(job, bodies),
    async sweep(questions) {
      return [...(await sweepShell(options, questions)), ...(await sweepBodies(bodies, questions))];
    },
  };
}
