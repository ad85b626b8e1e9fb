import type { InjectedSinks } from "@temporalio/worker";
import type { SessionSinks } from "../../src/contracts/activities.js";

/** What a workflow tells its process goes nowhere: for replays, and for workers that are not Longhaul's. */
export const noSinks: InjectedSinks<SessionSinks> = {
  surface: { offer: { fn: () => {}, callDuringReplay: false } },
};
