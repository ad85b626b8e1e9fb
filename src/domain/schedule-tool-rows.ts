import type { JsonObject } from "../contracts/header.js";
import type { SessionHeader } from "../contracts/log.js";
import type { ScheduleConfig } from "../contracts/schedule.js";
import type { ToolRow } from "../contracts/tools.js";
import { toolTexts } from "./schedule-texts.js";

export const scheduleToolNames = {
  create: "schedule_create",
  list: "schedule_list",
  delete: "schedule_delete",
} as const;

/** Open at the root: the tool itself refuses what it does not know, with a code of its own (spec/schedule §3.1). */
export const createParameters: JsonObject = {
  type: "object",
  properties: {
    prompt: { type: "string", description: "What to be reminded of; not blank." },
    after_seconds: {
      type: "number",
      description: "Once, so many seconds from now: a positive whole number.",
    },
    every_seconds: {
      type: "number",
      description: "Again and again, every so many seconds from now: a whole number, at least 300.",
    },
    at: {
      type: ["string", "object"],
      description:
        "Once, at this time in the future: 2026-08-06T09:00:00+08:00 or ...Z, or an object with date, time and time_zone.",
      properties: {
        date: { type: "string", description: "YYYY-MM-DD" },
        time: { type: "string", description: "HH:mm:ss, with up to three fraction digits." },
        time_zone: {
          type: "string",
          description: "UTC, or a name such as Asia/Shanghai; no abbreviation, no offset.",
        },
      },
      required: ["date", "time", "time_zone"],
      additionalProperties: false,
    },
  },
  required: ["prompt"],
};

export const deleteParameters: JsonObject = {
  type: "object",
  properties: { id: { type: "string", description: "Exact id from schedule_list." } },
  required: ["id"],
};

const rows: readonly ToolRow[] = [
  row(scheduleToolNames.create, toolTexts.create, createParameters),
  row(scheduleToolNames.list, toolTexts.list, { type: "object", properties: {} }),
  row(scheduleToolNames.delete, toolTexts.delete, deleteParameters),
];

/** Only root sessions have reminders (spec/schedule §1). */
export function offersReminders(
  header: Pick<SessionHeader, "origin" | "delegationDepth"> | undefined,
): boolean {
  return header?.origin !== "subagent" && (header?.delegationDepth ?? 0) === 0;
}

/** Rows of the tool table: none where reminders are off. */
export function scheduleToolRows(config: ScheduleConfig | undefined): readonly ToolRow[] {
  return config === undefined ? [] : rows;
}

/** Does the session itself answer this tool? */
export function isScheduleTool(name: string): boolean {
  return rows.some((one) => one.name === name);
}

function row(name: string, description: string, parameters: JsonObject): ToolRow {
  return { name, description, parameters, where: "state", parallel: false, idempotent: false };
}
