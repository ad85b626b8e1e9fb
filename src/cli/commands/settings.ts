import { readSettings, type ModelRoute, type Settings } from "../../config.js";
import type { Context } from "../command.js";
import { usage } from "../parse.js";

export interface SettingOptions {
  readonly home?: string;
  readonly model?: string;
  readonly "host-id"?: string;
}

/** The settings of a command; every command reads them the same way. */
export function settingsOf({ io }: Context, options: SettingOptions): Settings {
  return readSettings(
    io.env,
    { home: options.home, model: options.model, hostId: options["host-id"] },
    io.cwd,
  );
}

/** The model of a new session. Throws USAGE when none is named anywhere. */
export function modelOf(settings: Settings): ModelRoute {
  if (settings.model !== undefined) return settings.model;
  throw usage(
    `no model is configured: give --model provider/model or --model scripted:<file>, set LONGHAUL_MODEL, or set "model:" in ${settings.configFile}`,
  );
}

/** The session a command names. Throws USAGE. */
export function sessionIdOf(words: readonly string[], command: string): string {
  const id = words[0]?.trim();
  if (id === undefined || id === "")
    throw usage(`${command} expected <session>, got an empty word`, "longhaul sessions");
  return id;
}

/** A whole number of an option, at least `least` where that is given. Throws USAGE. */
export function wholeNumber(text: string, option: string, least?: number): number {
  const number = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= (least ?? -Infinity)) return number;
  const wanted = least === undefined ? "a whole number" : `a whole number of at least ${least}`;
  throw usage(`${option} expected ${wanted}, got ${JSON.stringify(text)}`);
}

const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration of an option in ms: a number with its unit, e.g. `90s` or `1.5h`. Throws USAGE. */
export function durationOf(text: string, option: string): number {
  const groups = /^(?<number>\d{1,12}(?:\.\d{1,6})?)(?<unit>ms|s|m|h|d)$/.exec(text.trim())?.groups;
  const unit = Object.entries(unitsMs).find(([name]) => name === groups?.["unit"])?.[1];
  const ms = Math.round(Number(groups?.["number"]) * (unit ?? Number.NaN));
  if (Number.isSafeInteger(ms) && ms > 0) return ms;
  throw usage(
    `${option} expected a time from 1ms with its unit (ms, s, m, h, d), like 90s or 10m, got ${JSON.stringify(text)}`,
  );
}

export async function readAll(input: AsyncIterable<Buffer | string>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of input)
    pieces.push(typeof piece === "string" ? Buffer.from(piece) : piece);
  return Buffer.concat(pieces).toString("utf8");
}
