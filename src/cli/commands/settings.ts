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

/** A whole number of an option. Throws USAGE. */
export function wholeNumber(text: string, option: string): number {
  if (!/^-?\d{1,15}$/.test(text))
    throw usage(`${option} expected a whole number, got ${JSON.stringify(text)}`);
  return Number(text);
}

export async function readAll(input: AsyncIterable<Buffer | string>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of input)
    pieces.push(typeof piece === "string" ? Buffer.from(piece) : piece);
  return Buffer.concat(pieces).toString("utf8");
}
