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
  if (typeof input !== "object" || input === null || Array.isArray(input))
    return invalid(`schedule expected true, false or an object, got ${shape(input)}`);
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  for (const [key, value] of given) {
    if (!isKey(key)) return invalid(`schedule has no key ${JSON.stringify(key)}`);
    if (!Number.isSafeInteger(value) || Number(value) < 1 || Number(value) > most[key])
      return invalid(
        `schedule.${key} expected a whole number from 1 to ${most[key]}, got ${shape(value)}`,
      );
  }
  return { ok: true, config: { ...defaultScheduleConfig, ...Object.fromEntries(given) } };
}

function isKey(key: string): key is keyof ScheduleConfig {
  return Object.hasOwn(most, key);
}

function shape(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean") return `${value}`;
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : typeof value;
}

function invalid(message: string): Refusal {
  return refuse("INVALID_CONFIG", message);
}
