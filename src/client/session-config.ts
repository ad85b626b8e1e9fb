import { defaultLimits, type SessionConfig, type SessionLimits } from "../contracts/config.js";
import { LonghaulError } from "../contracts/errors.js";
import { loadCompactionConfig } from "../domain/compaction-config.js";
import { loadJobsConfig } from "../domain/job-config.js";
import { loadScheduleConfig } from "../domain/schedule-config.js";
import { timeContextProblem } from "../domain/time-context-config.js";

/** What a deployment chooses for a session; the rest has defaults. */
export interface SessionChoices extends Partial<
  Omit<SessionConfig, "request" | "allowParallelInProgress" | "limits">
> {
  /** `provider/model`, or a whole request configuration. */
  readonly model: string | SessionConfig["request"];
  /** May several todos be in progress at once? Required, it has no default (docs/spec/todo.md §3). */
  readonly allowParallelInProgress: boolean;
  readonly limits?: Partial<SessionLimits>;
}

/**
 * A complete session configuration. World tools are on when a workspace (`cwd`, absolute on the host) is given.
 * Throws INVALID_CONFIG for a model that is not `provider/model`, and for settings of jobs, reminders,
 * compaction and the time for the model that cannot be.
 */
export function defineSessionConfig(choices: SessionChoices): SessionConfig {
  const { model, limits, ...rest } = choices;
  const jobs = loadJobsConfig(choices.jobs);
  if (!jobs.ok) throw new LonghaulError(jobs.code, jobs.message);
  const schedule = loadScheduleConfig(choices.schedule);
  if (!schedule.ok) throw new LonghaulError(schedule.code, schedule.message);
  const compaction = loadCompactionConfig(choices.compaction);
  if (!compaction.ok) throw new LonghaulError(compaction.code, compaction.message);
  const timeContext = timeContextProblem(choices.timeContext);
  if (timeContext !== undefined) throw new LonghaulError("INVALID_CONFIG", timeContext);
  return {
    worldTools: choices.cwd !== undefined,
    outsideWorkspace: false,
    deny: [],
    ask: [],
    ...rest,
    request: typeof model === "string" ? parseModelName(model) : model,
    limits: { ...defaultLimits, ...limits },
  };
}

function parseModelName(name: string): SessionConfig["request"] {
  const slash = name.indexOf("/");
  if (slash < 1 || slash === name.length - 1) {
    throw new LonghaulError(
      "INVALID_CONFIG",
      `model: expected provider/model such as deepseek/deepseek-chat, got ${JSON.stringify(name)}`,
    );
  }
  return { provider: name.slice(0, slash), model: name.slice(slash + 1) };
}
