import { refuse, type Refusal } from "../contracts/errors.js";
import { defaultScheduleConfig, type ScheduleConfig } from "../contracts/schedule.js";

/** Largest values of the two limits: all reminders travel with a checkpoint. */
const most: ScheduleConfig = { maxActive: 1_000, maxPromptBytes: 65_536 };

/**
 * `schedule` in a session's configuration, of any shape: left out or false, reminders are off (`config` undefined); true or
 * an object switches them on, with defaults for what it leaves out. INVALID_CONFIG when it is neither.
 */
export function loadScheduleConfig(
  input: unknown,
): { readonly ok: true; readonly config: ScheduleConfig | undefined } | Refusal {
  if (input === undefined || input === false) return { ok: true, config: undefined };
  if (input === true) return { ok: true, config: defaultScheduleConfig };
  const problem = scheduleConfigProblem(input);
  if (problem !== undefined) return refuse("INVALID_CONFIG", problem.message);
  const given = Object.entries(input as object).filter(([, value]) => value !== undefined);
  return { ok: true, config: { ...defaultScheduleConfig, ...Object.fromEntries(given) } };
}

export interface ScheduleConfigProblem {
  /** The key it stands at; absent: the whole. */
  readonly key?: string;
  /** Says it alone, e.g. `schedule.maxActive expected a whole number from 1 to 1000, got 0`. */
  readonly message: string;
  /** Says it beside its key. */
  readonly complaint: string;
}

/** What is wrong with `schedule` of a configuration; undefined when nothing is. */
export function scheduleConfigProblem(input: unknown): ScheduleConfigProblem | undefined {
  if (input === undefined || typeof input === "boolean") return undefined;
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    const complaint = `expected true, false or an object, got ${shape(input)}`;
    return { complaint, message: `schedule ${complaint}` };
  }
  for (const [key, value] of Object.entries(input)) {
    if (value === undefined) continue;
    if (!isKey(key)) {
      const complaint = `is not a setting; known here: ${Object.keys(most).join(", ")}`;
      return { key, complaint, message: `schedule has no key ${JSON.stringify(key)}` };
    }
    if (!Number.isSafeInteger(value) || Number(value) < 1 || Number(value) > most[key]) {
      const complaint = `expected a whole number from 1 to ${most[key]}, got ${shape(value)}`;
      return { key, complaint, message: `schedule.${key} ${complaint}` };
    }
  }
  return undefined;
}

function isKey(key: string): key is keyof ScheduleConfig {
  return Object.hasOwn(most, key);
}

function shape(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean") return `${value}`;
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : typeof value;
}
