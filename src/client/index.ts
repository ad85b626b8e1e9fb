/**
 * The client library: start sessions, send to them, follow them.
 *
 * ```ts
 * await using client = await LonghaulClient.connect({ connection: { address: "localhost:7233" } });
 * const session = await client.createSession({ config });
 * const { seq } = await session.followup("Tidy up the changelog.");
 * for await (const event of session.watch()) if (event.type === "delta") process.stdout.write(event.text);
 * ```
 *
 * @module
 */
export { LonghaulClient } from "./client.js";
export { SessionClient } from "./session-client.js";
export type {
  CreateSessionOptions,
  ForkOptions,
  HostRecord,
  ImportNotes,
  ImportOptions,
  ImportResult,
  ListFilter,
  LonghaulClientOptions,
  Outcome,
  PurgeOptions,
  PurgeResult,
  ReadOptions,
  SendOptions,
  SessionRecord,
  SessionSummary,
  WaitIdleOptions,
  WatchEvent,
  WatchOptions,
} from "./types.js";
export type { CompactionOutcome, CompactOptions } from "./session-compaction.js";
export type { RolloutEvent, RolloutOptions } from "./rollout.js";
export type { BuildSessions } from "./rollout-sessions.js";
export type { VerifyCheck, VerifyReport } from "./verify.js";
export type { JobOutputPiece } from "./job-output.js";
export type {
  JobOutputOptions,
  KillJobOptions,
  StartJobOptions,
  WaitJobOptions,
} from "./session-jobs.js";
export type {
  DeleteReminderOptions,
  DeleteReminderResult,
  ReminderDeleted,
  ReminderOutcome,
  ReminderRefusal,
  ReminderSet,
  ReminderSignal,
  ReminderSignalled,
  RemindersResult,
  RemindOptions,
  RemindResult,
} from "./session-reminders.js";
export { defineSessionConfig, type SessionChoices } from "./session-config.js";
export { LonghaulError, errorCodes, type ErrorCode } from "../contracts/errors.js";
export { defaultLimits, type SessionConfig, type SessionLimits } from "../contracts/config.js";
export type { ArchivedSession } from "../contracts/archive.js";
export type { LogEntry } from "../contracts/log.js";
export type { JobsFrame, PublicJob } from "../contracts/jobs.js";
export type {
  LocalTime,
  ScheduleErrorCode,
  ScheduleOperation,
  ScheduleView,
} from "../contracts/schedule.js";
export type { JobsView, JobView, SessionView } from "../contracts/session.js";
