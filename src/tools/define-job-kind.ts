import * as z from "zod";

import { LonghaulError } from "../contracts/errors.js";
import type { JobEnd, JobKindRow } from "../contracts/jobs.js";
import type { Store } from "../contracts/store.js";
import { violations } from "./outcome.js";

/** Kinds of background jobs by name; declare your own by merging: `interface JobKindMap { report: true }`. */
export interface JobKindMap {
  readonly bash: true;
}

/** A declared kind, or any other name. */
export type JobKind = keyof JobKindMap | (string & {});

/** What a job's body knows and may do. */
export interface JobContext<Input> extends JobEnvironment {
  readonly input: Input;
}

export interface JobEnvironment {
  readonly sessionId: string;
  /** `<kind>-<N>` */
  readonly jobId: string;
  /** The same whenever this job is begun, followed or taken up again: the key to hand to other services. */
  readonly idempotencyKey: string;
  /** Absolute workspace of the session. */
  readonly cwd?: string;
  /** May files outside the workspace be read and written? */
  readonly outsideWorkspace: boolean;
  /** Aborts when the job is to stop; its reason is an Error whose message says why. The job ends when the body has ended. */
  readonly signal: AbortSignal;
  /** Adds to the output of a streaming job, in order and without waiting; `stream` is `output` unless it is named. */
  readonly write: (output: string | Uint8Array, stream?: string) => void;
  /** Bytes of a stream so far, of earlier workers too: where a body that was taken up goes on. */
  readonly written: (stream?: string) => number;
  readonly store: Store;
  /** Data directory of this host. */
  readonly home: string;
}

/**
 * What a body returns: nothing or `{output?, detail?}` for a completed job, else with its status. `output` is the result of a
 * job with final output, of any length; `detail` is shown in its status line.
 */
export interface JobResult {
  readonly status?: JobEnd;
  readonly detail?: string;
  readonly output?: string;
}

type MaybePromise<T> = T | Promise<T>;

export interface JobKindSpec<Input extends z.ZodType> {
  /** 1 to 40 of a-z 0-9 - beginning with a letter; job ids are `<kind>-<N>`. */
  readonly kind: JobKind;
  /** `stream`: read piece by piece while it runs; `final`: one result after its end. */
  readonly output: "stream" | "final";
  /** Results of the job tools are cut to so many bytes; absent: not cut. */
  readonly outputLimitBytes?: number;
  readonly input: Input;
  /**
   * The body; it runs once. A throw makes the job `failed`; a throw because of `signal` makes it `killed`.
   */
  run(context: JobContext<z.output<Input>>): MaybePromise<JobResult | undefined>;
  /**
   * Goes on with a job whose worker process is gone; must not begin it anew. Without it such a job ends `failed`. It may be
   * called again when that worker is lost as well.
   */
  reattach?(context: JobContext<z.output<Input>>): MaybePromise<JobResult | undefined>;
}

export interface JobKindDefinition {
  readonly jobKind: JobKindRow;
  /** Can go on with a job whose worker process is gone. */
  readonly reattaches: boolean;
  /** Checks the input of a job; the body gets what `prepare` gave. */
  prepare(input: unknown): Promise<PreparedJob>;
}

export type PreparedJob =
  | {
      readonly ok: true;
      run(context: JobEnvironment): Promise<unknown>;
      readonly reattach?: (context: JobEnvironment) => Promise<unknown>;
    }
  | { readonly ok: false; readonly message: string };

/** Declares a kind of background job. Throws INVALID_CONFIG when it cannot be offered. */
export function defineJobKind<Input extends z.ZodType>(
  spec: JobKindSpec<Input>,
): JobKindDefinition {
  const { kind, output, outputLimitBytes } = spec;
  if (!/^[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?$/.test(kind)) {
    throw invalid(
      `a job kind has 1 to 40 of a-z 0-9 -, from a letter to a letter or digit, got ${JSON.stringify(kind)}`,
    );
  }
  if (output !== "stream" && output !== "final")
    throw invalid(`output of job kind ${kind} is "stream" or "final", got ${String(output)}`);
  if (
    outputLimitBytes !== undefined &&
    !(Number.isSafeInteger(outputLimitBytes) && outputLimitBytes > 0)
  ) {
    throw invalid(
      `outputLimitBytes of job kind ${kind} expected a positive whole number, got ${outputLimitBytes}`,
    );
  }
  return {
    jobKind: { kind, output, ...(outputLimitBytes === undefined ? {} : { outputLimitBytes }) },
    reattaches: spec.reattach !== undefined,
    async prepare(given) {
      const parsed = await spec.input.safeParseAsync(given);
      if (!parsed.success) return { ok: false, message: violations(parsed.error) };
      const input = parsed.data;
      return {
        ok: true,
        run: async (context) => await spec.run({ ...context, input }),
        ...(spec.reattach === undefined
          ? {}
          : { reattach: async (context) => await spec.reattach?.({ ...context, input }) }),
      };
    },
  };
}

function invalid(message: string): LonghaulError {
  return new LonghaulError("INVALID_CONFIG", message);
}
