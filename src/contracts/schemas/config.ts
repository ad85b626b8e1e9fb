import * as z from "zod";
import { loadCompactionConfig } from "../../domain/compaction-config.js";
import { jobsConfigProblem } from "../../domain/job-config.js";
import { loadRollOverConfig } from "../../domain/roll-over-config.js";
import { scheduleConfigProblem } from "../../domain/schedule-config.js";
import { timeContextProblem } from "../../domain/time-context-config.js";
import type { RollOverConfig } from "../archive.js";
import type { CompactionConfig } from "../compaction.js";
import type { SessionConfig, SessionLimits, TimeContextConfig } from "../config.js";
import type { RequestConfig } from "../header.js";
import type { JobsConfig } from "../jobs.js";
import type { ScheduleConfig } from "../schedule.js";

const name = z.string().min(1).max(200);

export const requestConfigSchema = z.strictObject({
  provider: name,
  model: name,
  reasoningEffort: name.exactOptional(),
  temperature: z.number().min(0).max(10).exactOptional(),
  maxTokens: z.int().min(1).exactOptional(),
  stop: z.array(z.string().min(1)).readonly().exactOptional(),
}) satisfies z.ZodType<RequestConfig>;

export const sessionLimitsSchema = z.strictObject({
  maxParallelToolCalls: z.int().min(1),
  maxInlineBytes: z.int().min(1),
  maxModelRetries: z.int().min(0),
  retryBaseMs: z.int().min(0),
  retryCapMs: z.int().min(0),
  modelTimeoutMs: z.int().min(1),
}) satisfies z.ZodType<SessionLimits>;

/** Strict, each key optional; the rules are the session's own (spec/jobs §13). */
export const jobsConfigSchema = z
  .custom<Partial<JobsConfig>>()
  .superRefine((value: unknown, context) => {
    const problem = jobsConfigProblem(value);
    if (problem === undefined) return;
    const path = problem.key === undefined ? [] : [problem.key];
    context.addIssue({ code: "custom", path, message: problem.complaint });
  });

/** true, false, or limits, each optional; the rules are the session's own (spec/schedule C16). */
export const scheduleSchema = z
  .custom<boolean | Partial<ScheduleConfig>>()
  .superRefine((value: unknown, context) => {
    const problem = scheduleConfigProblem(value);
    if (problem === undefined) return;
    const path = problem.key === undefined ? [] : [problem.key];
    context.addIssue({ code: "custom", path, message: problem.complaint });
  });

export const timeContextSchema = z
  .custom<boolean | TimeContextConfig>()
  .superRefine((value: unknown, context) => {
    const problem = timeContextProblem(value);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  });

/** true, false, or a policy, each part optional; the rules are the session's own (spec/harness §6). */
export const compactionSchema = z
  .custom<boolean | Partial<CompactionConfig>>()
  .superRefine((value: unknown, context) => {
    const loaded = loadCompactionConfig(value);
    if (!loaded.ok) context.addIssue({ code: "custom", message: loaded.message });
  });

export const rollOverSchema = z
  .custom<Partial<RollOverConfig>>()
  .superRefine((value: unknown, context) => {
    const loaded = loadRollOverConfig(value);
    if (!loaded.ok) context.addIssue({ code: "custom", message: loaded.message });
  });

export const sessionConfigSchema = z.strictObject({
  request: requestConfigSchema,
  system: z.string().exactOptional(),
  allowParallelInProgress: z.boolean(),
  worldTools: z.boolean(),
  cwd: z.string().startsWith("/", "expected an absolute path").exactOptional(),
  outsideWorkspace: z.boolean(),
  deny: z.array(z.string()).readonly(),
  ask: z.array(z.string()).readonly(),
  limits: sessionLimitsSchema,
  jobs: jobsConfigSchema.exactOptional(),
  schedule: scheduleSchema.exactOptional(),
  timeContext: timeContextSchema.exactOptional(),
  compaction: compactionSchema.exactOptional(),
  rollOver: rollOverSchema.exactOptional(),
}) satisfies z.ZodType<SessionConfig>;

/** What `session.configure` may change: any part of the configuration. */
export const configChangeSchema = z.strictObject({
  request: requestConfigSchema.exactOptional(),
  system: z.string().exactOptional(),
  allowParallelInProgress: z.boolean().exactOptional(),
  worldTools: z.boolean().exactOptional(),
  cwd: sessionConfigSchema.shape.cwd,
  outsideWorkspace: z.boolean().exactOptional(),
  deny: sessionConfigSchema.shape.deny.exactOptional(),
  ask: sessionConfigSchema.shape.ask.exactOptional(),
  limits: sessionLimitsSchema.exactOptional(),
  jobs: jobsConfigSchema.exactOptional(),
  schedule: scheduleSchema.exactOptional(),
  timeContext: timeContextSchema.exactOptional(),
  compaction: compactionSchema.exactOptional(),
  rollOver: rollOverSchema.exactOptional(),
}) satisfies z.ZodType<Partial<SessionConfig>>;
