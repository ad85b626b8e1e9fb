import { defaultLimits } from "../contracts/config.js";
import { loadCompactionConfig } from "./compaction-config.js";
import { loadJobsConfig } from "./job-config.js";
import { loadRollOverConfig } from "./roll-over-config.js";
import { loadScheduleConfig } from "./schedule-config.js";
import { timeContextProblem } from "./time-context-config.js";
import { checkTodoPolicy } from "./todo.js";
import { fieldsOf } from "./fields.js";

/**
 * What is wrong with a session's start input, or undefined. Any Temporal client can start a session; one that cannot
 * open fails at once instead of failing its first task for ever.
 */
export function sessionInputProblem(input: unknown): string | undefined {
  const given = fieldsOf(input);
  if (given["v"] !== 1)
    return `expected start input {v: 1, config, attributes}, got v ${JSON.stringify(given["v"]) ?? "none"}`;
  for (const key of ["host", "title", "parentSession"]) {
    if (given[key] !== undefined && typeof given[key] !== "string") return `\`${key}\` is text`;
  }
  if (!isTextList(given["attributes"]))
    return "`attributes` is the list of registered search attributes";
  const config = fieldsOf(given["config"]);
  const request = fieldsOf(config["request"]);
  if (!isName(request["provider"]) || !isName(request["model"])) {
    return "`config.request` needs a `provider` and a `model`";
  }
  const policy = checkTodoPolicy(config["allowParallelInProgress"]);
  if (policy !== undefined) return `config: ${policy}`;
  for (const key of ["worldTools", "outsideWorkspace"]) {
    if (typeof config[key] !== "boolean") return `\`config.${key}\` is true or false`;
  }
  for (const key of ["deny", "ask"]) {
    if (!isTextList(config[key])) return `\`config.${key}\` is a list of tool names`;
  }
  for (const key of ["system", "cwd"]) {
    if (config[key] !== undefined && typeof config[key] !== "string")
      return `\`config.${key}\` is text`;
  }
  const limits = fieldsOf(config["limits"]);
  for (const [key, standard] of Object.entries(defaultLimits)) {
    const value = limits[key];
    const least = key === "maxParallelToolCalls" || key === "modelTimeoutMs" ? 1 : 0;
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < least) {
      return `\`config.limits.${key}\` is a whole number from ${least}, such as ${standard}`;
    }
  }
  const jobs = loadJobsConfig(config["jobs"]);
  if (!jobs.ok) return `config: ${jobs.message}`;
  const schedule = loadScheduleConfig(config["schedule"]);
  if (!schedule.ok) return `config: ${schedule.message}`;
  const compaction = loadCompactionConfig(config["compaction"]);
  if (!compaction.ok) return `config: ${compaction.message}`;
  const rollOver = loadRollOverConfig(config["rollOver"]);
  if (!rollOver.ok) return `config: ${rollOver.message}`;
  return timeContextProblem(config["timeContext"]);
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
