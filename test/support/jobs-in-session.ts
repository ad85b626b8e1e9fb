import type { JobSnapshot } from "../../src/contracts/jobs.js";
import type { SessionConfig } from "../../src/contracts/config.js";
import type { JobLane } from "../../src/contracts/jobs.js";
import type { ToolRow } from "../../src/contracts/tools.js";
import { noticeId, type OwnerView } from "../../src/domain/job-notices.js";
import { decideSettle } from "../../src/domain/job-settle.js";
import { snapshotOf } from "../../src/domain/job-views.js";
import { isLive, jobOf, type JobRecord } from "../../src/domain/jobs.js";
import type { Session } from "../../src/domain/session.js";
import { payOwedWake, reportJob, startJob } from "../../src/domain/session-jobs.js";
import { entriesOf, openSession } from "./session-script.js";

/** A session with world tools whose host runs jobs of the kind `bash`, which stream, and of the kind `sum`, which do not. */
export function openJobSession(
  rows: readonly ToolRow[] = [],
  jobs: SessionConfig["jobs"] = {},
): Session {
  const session = openSession({ worldTools: true, cwd: "/w", jobs }, rows);
  const { epoch, tools } = session.folds.place;
  session.record({
    type: "session/tools",
    data: {
      epoch,
      tools,
      jobKinds: [
        { kind: "bash", output: "stream" },
        { kind: "sum", output: "final" },
        { kind: "tight", output: "stream", outputLimitBytes: 64 },
      ],
    },
  });
  return session;
}

export interface Settled {
  /** As it was handed to whoever is told. */
  readonly snapshot: JobSnapshot;
  /** A counted wait or read delivers it. */
  readonly collected: boolean;
  readonly lane: JobLane | undefined;
}

/** Background jobs of one session, whose workflows and host the test plays. */
export class JobsInSession {
  readonly session: Session;
  readonly settlements: Settled[] = [];

  constructor(session: Session) {
    this.session = session;
  }

  get live(): readonly JobRecord[] {
    return this.session.folds.jobs.jobs.filter(isLive);
  }

  start(kind = "bash"): string {
    const started = startJob(this.session, { kind, label: "x", input: { command: "x" } });
    if (!started.ok) throw new Error(started.message);
    this.session.effects.length = 0;
    return started.id;
  }

  /** The report of a job's workflow. */
  settle(id: string, outcome: object = { status: "completed" }): void {
    const { session } = this;
    const job = jobOf(session.folds.jobs, id) as JobRecord;
    const before = session.waits.live.filter((one) => one.job === id).length;
    reportJob(session, {
      id,
      nonce: job.nonce,
      owner: session.names.token,
      report: "settled",
      outcome,
    });
    this.#keep(id, before > 0);
  }

  /** A settlement whose lane is decided by what the session was before. */
  settleSeen(id: string, owner: OwnerView): void {
    const { session } = this;
    const { now, waits, jobsConfig: config } = session;
    const outcome = { status: "completed" } as const;
    const settlement = decideSettle(session.folds.jobs, id, outcome, { now, waits, owner, config });
    if (!settlement.ok) throw new Error(settlement.message);
    session.record(...settlement.entries);
    this.#keep(id, false);
  }

  /** Its host answers, or does not. */
  setLive(live: boolean): void {
    if (this.session.folds.place.live === live) return;
    this.session.record({ type: "session/live", data: { live, why: "the test says so" } });
    if (!live) return;
    this.session.answeredAt = this.session.now;
    payOwedWake(this.session);
  }

  /** How often the model is shown the notice of a job, and how often it still waits in the inbox. */
  told(id: string): { readonly shown: number; readonly pending: number } {
    const { nextTurn, nextStep } = this.session.folds.inbox;
    const isNotice = (message: { readonly id: string }) => message.id === noticeId(id);
    return {
      shown: entriesOf(this.session, "user/message").filter(({ data }) => isNotice(data.message))
        .length,
      pending: [...nextTurn, ...nextStep].filter(isNotice).length,
    };
  }

  #keep(id: string, collected: boolean): void {
    const entry = entriesOf(this.session, "job/settled").find(({ data }) => data.id === id);
    const job = jobOf(this.session.folds.jobs, id) as JobRecord;
    this.settlements.push({ snapshot: snapshotOf(job), collected, lane: entry?.data.lane });
  }
}
