import { workflowInfo, type WorkflowInfo } from "@temporalio/workflow";

/** What a run goes by of time and of its history. */
export interface Moment {
  /** Epoch ms. */
  readonly now: number;
  readonly info: WorkflowInfo;
}

/** As the SDK tells it; for a worker without Longhaul's interceptors. */
export const passing: Moment = {
  get now() {
    return Date.now();
  },
  get info() {
    return workflowInfo();
  },
};

/**
 * Stands still until something comes that a replay will see too. A worker is also woken by updates that are rejected, and moves
 * the time of the workflow on; a run that then did what had come due would do it where no replay does (facts §0.36).
 */
export class StandingMoment implements Moment {
  #now = Date.now();
  #info = workflowInfo();

  get now(): number {
    return this.#now;
  }

  get info(): WorkflowInfo {
    return this.#info;
  }

  moveOn(): void {
    this.#now = Date.now();
    this.#info = workflowInfo();
  }
}
