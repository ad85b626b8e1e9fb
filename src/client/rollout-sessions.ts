import type { Client } from "@temporalio/client";
import { LonghaulError } from "../contracts/errors.js";
import { workflowTypes } from "../contracts/names.js";
import { attemptUntil, type Bounded } from "./attempts.js";

/** What a roll-out needs of sessions. */
export interface SessionsOnBuilds {
  readonly client: Client;
  readonly bounds: Bounded;
  readonly timeoutMs: number;
  /** Asks a session to go on in a new run. */
  rollOver(session: string): Promise<void>;
  /** Is all of a session that ended in this run archived? Always true where that cannot be told. */
  isArchived(session: string, run: string): Promise<boolean>;
}

/** Sessions on one build. */
export interface BuildSessions {
  /** Undefined: begun without versioning. */
  readonly build?: string;
  readonly sessions: number;
  /** Some of them. */
  readonly ids: readonly string[];
}

/** A session and where visibility says it is; it may lag behind by a second. */
export interface VersionedSession {
  readonly id: string;
  readonly run: string;
  /** As `versionName` has it. */
  readonly version?: string;
  readonly pinned: boolean;
  /** All that worked on its run. */
  readonly used: readonly string[];
}

/** The name of a build in visibility. */
export function versionName(deployment: string, build: string): string {
  return `${deployment}:${build}`;
}

/** Sessions of task queues, open ones or those that have ended, for which a term of visibility holds. */
export async function listVersioned(
  { client, bounds, timeoutMs }: SessionsOnBuilds,
  queues: readonly string[],
  term: string,
  state: "open" | "ended" = "open",
): Promise<readonly VersionedSession[]> {
  const names = queues.map((name) => `'${name}'`).join(", ");
  const query = `WorkflowType = '${workflowTypes.session}' AND ${states[state]} AND TaskQueue IN (${names}) AND ${term}`;
  // The deadline is that of all pages.
  const allowedMs = timeoutMs * 10;
  return attemptUntil(
    bounds,
    {
      deadline: Date.now() + allowedMs,
      attemptMs: allowedMs,
      gone: () => Promise.resolve(undefined),
      late: (last) =>
        Promise.resolve(
          new LonghaulError(
            "TEMPORAL_UNREACHABLE",
            `Temporal did not list the sessions within ${allowedMs / 1000} s (${last.message})`,
          ),
        ),
    },
    async () => {
      const found: VersionedSession[] = [];
      for await (const info of client.workflow.list({ query, pageSize: 1_000 })) {
        const { searchAttributes: attributes } = info;
        const version = textsOf(attributes["TemporalWorkerDeploymentVersion"])[0];
        found.push({
          id: info.workflowId,
          run: info.runId,
          ...(version === undefined ? {} : { version }),
          pinned: textsOf(attributes["TemporalWorkflowVersioningBehavior"])[0] === "Pinned",
          used: textsOf(attributes["TemporalUsedWorkerDeploymentVersions"]),
        });
      }
      return found;
    },
  );
}

const states = {
  open: "ExecutionStatus = 'Running'",
  ended: "ExecutionStatus IN ('Completed', 'Failed', 'Terminated', 'Canceled', 'TimedOut')",
};

/** Counts sessions by build, by name, those without one last. */
export function tallyOf(sessions: readonly VersionedSession[]): readonly BuildSessions[] {
  const byVersion = new Map<string, VersionedSession[]>();
  for (const session of sessions) {
    const { version = "" } = session;
    const those = byVersion.get(version);
    if (those === undefined) byVersion.set(version, [session]);
    else those.push(session);
  }
  return [...byVersion]
    .toSorted(([a], [b]) => (b === "" || (a !== "" && a < b) ? -1 : 1))
    .map(([version, those]) => ({
      ...(version === "" ? {} : { build: version.slice(version.indexOf(":") + 1) }),
      sessions: those.length,
      ids: those.slice(0, 5).map(({ id }) => id),
    }));
}

/** Asks sessions once, and again when a run has not moved for a long time: the store may have been away. */
export class Asking {
  readonly #sessions: SessionsOnBuilds;
  /** When each run was asked, epoch ms. */
  readonly #runs = new Map<string, number>();

  constructor(sessions: SessionsOnBuilds) {
    this.#sessions = sessions;
  }

  /** Runs that were asked. */
  get count(): number {
    return this.#runs.size;
  }

  async ask({ id, run }: Pick<VersionedSession, "id" | "run">): Promise<void> {
    if (Date.now() - (this.#runs.get(run) ?? 0) < againMs) return;
    await orGone(this.#sessions.rollOver(id));
    this.#runs.set(run, Date.now());
  }
}

/** A session that could not roll over tries again after a minute, if it is asked. */
const againMs = 90_000;

/** Nothing is left to do for a session that has ended meanwhile. */
async function orGone(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    const over = ["SESSION_CLOSED", "SESSION_NOT_FOUND"];
    if (!(error instanceof LonghaulError && over.includes(error.code))) throw error;
  }
}

function textsOf(value: unknown): readonly string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.filter((one) => typeof one === "string");
}
