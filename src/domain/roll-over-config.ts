import { defaultRollOverConfig, type RollOverConfig } from "../contracts/archive.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import { isFields } from "./reference-entry.js";

/** What the server allows a run, and a little more than one step needs. */
const ranges: { readonly [Key in keyof RollOverConfig]: readonly [least: number, most: number] } = {
  events: [1, 40_000],
  bytes: [1, 40_000_000],
  signals: [1, 9_000],
  updates: [1, 1_900],
  minIntervalMs: [0, 3_600_000],
};

/** The `rollOver` key of a configuration; what is left out has its default. INVALID_CONFIG. */
export function loadRollOverConfig(
  given: unknown,
): { readonly ok: true; readonly config: RollOverConfig } | Refusal {
  if (given === undefined) return { ok: true, config: defaultRollOverConfig };
  if (!isFields(given)) return refuse("INVALID_CONFIG", "`rollOver` is an object");
  for (const [key, value] of Object.entries(given)) {
    const range = Object.hasOwn(ranges, key) ? ranges[key as keyof RollOverConfig] : undefined;
    if (range === undefined)
      return refuse("INVALID_CONFIG", `rollOver: there is no key ${JSON.stringify(key)}`);
    const [least, most] = range;
    if (!Number.isSafeInteger(value) || Number(value) < least || Number(value) > most)
      return refuse(
        "INVALID_CONFIG",
        `rollOver: \`${key}\` is a whole number from ${least} to ${most}`,
      );
  }
  return { ok: true, config: { ...defaultRollOverConfig, ...given } };
}
