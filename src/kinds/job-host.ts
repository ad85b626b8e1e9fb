import type { JobKindRow } from "../contracts/jobs.js";
import { LonghaulError } from "../contracts/errors.js";
import type { Store } from "../contracts/store.js";
import type { JobKindDefinition } from "../tools/define-job-kind.js";
import type { BeginJob, BegunJob, FollowedJob, FollowKind } from "./following.js";
import { beginShell, followShell, shellKind } from "./shell-jobs.js";

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
  return {
    kinds: [shellKind, ...kinds.map(({ jobKind }) => jobKind)],
    async begin(job) {
      if (job.kind === shellKind.kind) return await beginShell(job, options);
      return { kind: "refused", reason: `no kind ${job.kind}` };
    },
    follow(job) {
      return followShell(job, options);
    },
  };
}
