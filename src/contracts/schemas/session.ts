import * as z from "zod";
import { checkLossless } from "../../domain/lossless.js";
import type { JsonObject } from "../header.js";
import type {
  CloseCommand,
  CompactCommand,
  ConfigureCommand,
  JobKillCommand,
  JobStartCommand,
  RebindCommand,
  SendCommand,
  TodoWriteCommand,
} from "../session.js";
import type { LocalTime, ScheduleChangeCommand } from "../schedule.js";
import { todoStatuses } from "../todo.js";
import { configChangeSchema, sessionConfigSchema } from "./config.js";

/** Most a message or a command may hold, UTF-8 bytes (design D10). */
export const maxCommandBytes = 256 * 1024;

export const sessionIdSchema = z
  .string("expected 1-200 characters of A-Z a-z 0-9 . _ -")
  .regex(/^[A-Za-z0-9._-]{1,200}$/u, "expected 1-200 characters of A-Z a-z 0-9 . _ -");

/** An id chosen by the caller: of a message or of an operation. */
export const callerIdSchema = z
  .string("expected 1-200 characters without white space at its ends")
  .min(1, "expected 1-200 characters without white space at its ends")
  .max(200, "expected 1-200 characters without white space at its ends")
  .refine((id) => id.trim() === id, "expected 1-200 characters without white space at its ends");

export const sendSchema = z.strictObject({
  id: callerIdSchema,
  mode: z.enum(["followup", "steer", "inject"], "expected followup, steer or inject"),
  content: z
    .string("expected text")
    .refine((text) => text.trim() !== "", "expected text that is not blank"),
  // That it exists is checked where zone data is.
  timeZone: z.string("expected a time zone such as Europe/Berlin").exactOptional(),
}) satisfies z.ZodType<SendCommand>;

export const configureSchema = z
  .strictObject({
    config: configChangeSchema.exactOptional(),
    refreshTools: z.boolean().exactOptional(),
  })
  .refine(
    (cmd) => cmd.config !== undefined || cmd.refreshTools === true,
    "expected `config` or `refreshTools: true`",
  ) satisfies z.ZodType<ConfigureCommand>;

export const closeSchema = z.strictObject({
  reason: z.string().max(1000).exactOptional(),
}) satisfies z.ZodType<CloseCommand>;

/** The shape only: the rules of the list are the session's (spec/todo §3), so that every caller meets the same ones. */
export const todoWriteSchema = z.strictObject({
  opId: callerIdSchema,
  turn: z.int().min(0),
  todos: z.array(z.strictObject({ content: z.string(), status: z.enum(todoStatuses) })).readonly(),
}) satisfies z.ZodType<TodoWriteCommand>;

export const jobIdSchema = z.string("expected a job id").min(1, "expected a job id").max(1000);

const jsonObjectSchema = z
  .custom<JsonObject>(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "expected an object",
  )
  .superRefine((value, context) => {
    const flaw = checkLossless(value, { omitUndefined: true });
    if (flaw === undefined) return;
    const where = flaw.length > 200 ? `…${flaw.slice(-150)}` : flaw;
    context.addIssue({ code: "custom", message: `expected JSON, but ${where}` });
  });

export const jobStartSchema = z.strictObject({
  opId: callerIdSchema,
  kind: z.string("expected a kind of job").min(1, "expected a kind of job"),
  label: z
    .string("expected one line that is not blank")
    .regex(/^[^\n\r\u2028\u2029]*$/u, "expected one line that is not blank")
    .refine((label) => label.trim() !== "", "expected one line that is not blank"),
  input: jsonObjectSchema,
}) satisfies z.ZodType<JobStartCommand>;

export const jobKillSchema = z.strictObject({
  opId: callerIdSchema,
  jobId: jobIdSchema,
  reason: z.string().max(1000, "expected at most 1,000 characters").exactOptional(),
}) satisfies z.ZodType<JobKillCommand>;

/** The types only: the rules are those of the reminders (spec/schedule §3, §4), so that every caller meets the same ones. */
export const remindSchema = z.looseObject({
  prompt: z.string("expected text"),
  in: z.number("expected a number of seconds").exactOptional(),
  every: z.number("expected a number of seconds").exactOptional(),
  at: z
    .custom<string | LocalTime>(
      (value) => typeof value === "string" || (typeof value === "object" && value !== null),
      "expected text, or a local time {date, time, time_zone}",
    )
    .exactOptional(),
  id: callerIdSchema.exactOptional(),
});

export const deleteReminderSchema = z.strictObject({
  requestId: callerIdSchema,
  operation: z.literal("delete"),
  id: z.string("expected the id of a reminder").max(200, "expected at most 200 characters"),
}) satisfies z.ZodType<ScheduleChangeCommand>;

const hostIdSchema = z
  .string("expected 1-200 characters of A-Z a-z 0-9 . _ -")
  .regex(/^[A-Za-z0-9._-]{1,200}$/u, "expected 1-200 characters of A-Z a-z 0-9 . _ -");

export const rebindSchema = z.strictObject({
  host: hostIdSchema,
}) satisfies z.ZodType<RebindCommand>;

export const compactSchema = z.strictObject({
  opId: callerIdSchema,
}) satisfies z.ZodType<CompactCommand>;

export const createSessionSchema = z.strictObject({
  id: sessionIdSchema.exactOptional(),
  config: sessionConfigSchema,
  host: hostIdSchema.exactOptional(),
  title: z.string().min(1).max(200).exactOptional(),
  parentSession: sessionIdSchema.exactOptional(),
  waitReady: z.boolean().exactOptional(),
});
