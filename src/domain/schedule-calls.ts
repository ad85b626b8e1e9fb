import type { ZoneAnswer } from "../contracts/schedule.js";
import { runOne, type Loop } from "./effects.js";
import type { PolicyCall } from "./policy.js";
import { scheduleToolNames } from "./schedule-tool-rows.js";
import {
  finishScheduleCreate,
  planScheduleCreate,
  runScheduleDelete,
  runScheduleList,
  type ScheduleToolResult,
} from "./schedule-tools.js";
import type { Session } from "./session.js";

/** Runs a tool of reminders in workflow code (spec/schedule §3). Only a local time is looked up outside, before it decides. */
export function* runScheduleTool(
  session: Session,
  key: string,
  { name, args }: PolicyCall,
): Loop<ScheduleToolResult> {
  const { schedule } = session.folds;
  if (name === scheduleToolNames.list) return runScheduleList(schedule, session.now);
  if (name === scheduleToolNames.delete) return runScheduleDelete(schedule, args, session.aborting);
  const config = session.scheduleConfig;
  // The table offers the tools only where reminders are on.
  if (config === undefined) return runScheduleList(schedule, session.now);
  const plan = planScheduleCreate(schedule, args, config);
  if (plan.kind === "done") return plan.result;
  let zone: ZoneAnswer | undefined;
  if (plan.kind === "resolve") {
    const { local } = plan;
    const settled = yield* runOne({ kind: "zone", key, local }, () => session.aborting);
    zone = settled.kind === "zone" ? settled.zone : undefined;
  }
  return finishScheduleCreate(session.folds.schedule, plan.request, {
    now: session.now,
    config,
    zone,
    aborted: session.aborting,
  });
}
