import { homedir, hostname } from "node:os";
import { randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import * as z from "zod";
import { defaultLimits, type SessionConfig, type SessionLimits } from "./contracts/config.js";
import { LonghaulError } from "./contracts/errors.js";
import type { RequestConfig } from "./contracts/header.js";
import { readConfigFile, readOrCreate, type FileConfig } from "./config-file.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What the command line may set; each wins over the environment, which wins over the file. */
export interface SettingFlags {
  readonly home?: string | undefined;
  readonly model?: string | undefined;
  readonly hostId?: string | undefined;
}

/** A model's name: `provider/model`, or `scripted:<file>`. */
export interface ModelRoute {
  readonly provider: string;
  readonly model: string;
}

/** Everything read from outside, read once (design D12). */
export interface Settings {
  /** Data directory: server, store, workspaces, `config.yaml`, `host-id`. Absolute. */
  readonly home: string;
  readonly configFile: string;
  readonly hostId: string;
  readonly model?: ModelRoute;
  readonly file: FileConfig;
  readonly limits: SessionLimits;
}

/**
 * Reads flags, environment and `<home>/config.yaml`; the first call in a data directory writes the file and the host id.
 * Throws INVALID_CONFIG naming the file, its line or key, or the variable that is wrong; USAGE for a flag.
 */
export function readSettings(env: Environment, flags: SettingFlags, cwd: string): Settings {
  const home = homeOf(env, flags, cwd);
  const configFile = join(home, "config.yaml");
  const file = readConfigFile(configFile);
  const model = modelOf(env, flags, file, configFile, cwd);
  return {
    home,
    configFile,
    hostId: hostIdOf(env, flags, home),
    ...(model === undefined ? {} : { model }),
    file,
    limits: { ...defaultLimits, ...file.limits },
  };
}

/** The data directory alone, for commands that need nothing else; creates nothing. */
export function homeOf(env: Environment, flags: Pick<SettingFlags, "home">, cwd: string): string {
  const given = flags.home ?? set(env, "LONGHAUL_HOME");
  if (given === undefined) return join(homedir(), ".longhaul");
  if (given.trim() === "") throw wrong("--home", "expected a directory, got an empty text");
  return resolve(cwd, given);
}

/**
 * Reads `provider/model` (the model may hold more slashes) or `scripted:<file>`, a file relative to `cwd`.
 * `from` names where the text came from. Throws INVALID_CONFIG, or USAGE when that is a flag.
 */
export function parseModel(text: string, from: string, cwd: string): ModelRoute {
  const scripted = /^scripted:(?<file>.+)$/s.exec(text)?.groups?.["file"];
  if (scripted !== undefined) return { provider: "scripted", model: resolve(cwd, scripted) };
  const named = /^(?<provider>[a-z0-9][\w.-]*)\/(?<model>\S+)$/i.exec(text)?.groups;
  const [provider, model] = [named?.["provider"], named?.["model"]];
  if (provider === undefined || model === undefined) {
    throw wrong(from, `expected provider/model or scripted:<file>, got ${JSON.stringify(text)}`);
  }
  return { provider, model };
}

/** The name `parseModel` reads. */
export function modelName({ provider, model }: ModelRoute): string {
  return provider === "scripted" ? `scripted:${model}` : `${provider}/${model}`;
}

export interface SessionChoices {
  readonly model: ModelRoute;
  /** Absolute workspace; without one the session gets no world tools. */
  readonly cwd?: string;
}

/** The complete configuration a session is opened with. */
export function sessionConfig(
  settings: Pick<Settings, "file" | "limits">,
  choices: SessionChoices,
): SessionConfig {
  const { file, limits } = settings;
  const request: RequestConfig = { ...choices.model, ...file.request };
  return {
    request,
    ...(file.system === undefined ? {} : { system: file.system }),
    allowParallelInProgress: file.allowParallelInProgress,
    worldTools: choices.cwd !== undefined,
    ...(choices.cwd === undefined ? {} : { cwd: choices.cwd }),
    outsideWorkspace: file.outsideWorkspace ?? false,
    deny: file.deny ?? [],
    ask: file.ask ?? [],
    limits,
    ...(file.jobs === undefined ? {} : { jobs: file.jobs }),
    ...(file.schedule === undefined ? {} : { schedule: file.schedule }),
    ...(file.timeContext === undefined ? {} : { timeContext: file.timeContext }),
    ...(file.compaction === undefined ? {} : { compaction: file.compaction }),
  };
}

const HostId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/);

function hostIdOf(env: Environment, flags: SettingFlags, home: string): string {
  const given = flags.hostId ?? set(env, "LONGHAUL_HOST_ID");
  if (given !== undefined)
    return checkHostId(given, flags.hostId === undefined ? "LONGHAUL_HOST_ID" : "--host-id");
  const path = join(home, "host-id");
  return checkHostId(readOrCreate(path, () => `${freshHostId()}\n`).trim(), path);
}

function checkHostId(text: string, from: string): string {
  if (HostId.safeParse(text).success) return text;
  throw wrong(
    from,
    `expected 1 to 63 letters, digits, ".", "_" or "-", got ${JSON.stringify(text)}`,
  );
}

function freshHostId(): string {
  const name = hostname()
    .split(".", 1)[0]
    ?.replaceAll(/[^A-Za-z0-9-]/g, "-")
    .replace(/^-+/, "")
    .slice(0, 40);
  return `${name === undefined || name === "" ? "host" : name}-${randomBytes(3).toString("hex")}`;
}

function modelOf(
  env: Environment,
  flags: SettingFlags,
  file: FileConfig,
  path: string,
  cwd: string,
): ModelRoute | undefined {
  if (flags.model !== undefined) return parseModel(flags.model, "--model", cwd);
  const variable = set(env, "LONGHAUL_MODEL");
  if (variable !== undefined) return parseModel(variable, "LONGHAUL_MODEL", cwd);
  return file.model === undefined
    ? undefined
    : parseModel(file.model, `${path}: $.model`, resolve(path, ".."));
}

/** A variable's value; empty counts as not set. */
function set(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === undefined || value.trim() === "" ? undefined : value;
}

/** A wrong flag is a mistake on the command line, all else one in the configuration. */
function wrong(from: string, message: string): LonghaulError {
  return new LonghaulError(
    from.startsWith("--") ? "USAGE" : "INVALID_CONFIG",
    `${from} ${message}`,
  );
}
