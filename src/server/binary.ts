import { execFile } from "node:child_process";
import { environmentForPrograms, type Environment } from "./environment.js";

/** The Temporal CLI release that is fetched when none is found. */
export const pinnedVersion = "1.9.1";

/** The oldest Temporal CLI whose server has what Longhaul uses. */
export const oldestVersion = "1.5.0";

export type Inspection =
  | { readonly ok: true; readonly version: string }
  | { readonly ok: false; readonly reason: string };

/** Runs `<path> --version` and says whether this is a Temporal CLI that is new enough. */
export async function inspectBinary(path: string, env: Environment): Promise<Inspection> {
  const answer = await runVersion(path, env);
  if (!answer.ok) return answer;
  const version = parseVersion(answer.version);
  if (version === undefined) {
    return {
      ok: false,
      reason: `${path} is not the Temporal CLI (--version printed ${quoted(answer.version)})`,
    };
  }
  if (compareVersions(version, oldestVersion) < 0) {
    return { ok: false, reason: `${path} is version ${version}, older than ${oldestVersion}` };
  }
  return { ok: true, version };
}

/** The version in the output of `temporal --version`, if it is one. */
export function parseVersion(output: string): string | undefined {
  return /^temporal version v?(\d+\.\d+\.\d+\S*)/m.exec(output)?.[1];
}

/** Orders two versions by their three numbers: negative when `a` is older than `b`. */
export function compareVersions(a: string, b: string): number {
  const left = numbers(a);
  const right = numbers(b);
  for (let i = 0; i < 3; i += 1) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function numbers(version: string): number[] {
  return (/^\d+\.\d+\.\d+/.exec(version)?.[0] ?? "0.0.0").split(".").map(Number);
}

function runVersion(path: string, env: Environment): Promise<Inspection> {
  return new Promise((resolve) => {
    const options = {
      timeout: 30_000,
      maxBuffer: 1 << 20,
      env: environmentForPrograms(env),
      encoding: "utf8",
    } as const;
    execFile(path, ["--version"], options, (error, stdout) => {
      if (!error) resolve({ ok: true, version: stdout });
      else resolve({ ok: false, reason: whyNot(path, error) });
    });
  });
}

function whyNot(
  path: string,
  error: Error & { code?: string | number | null; killed?: boolean },
): string {
  if (error.code === "ENOENT") return `${path} does not exist`;
  if (error.code === "EACCES") return `${path} is not an executable file`;
  if (error.killed) return `${path} --version did not answer within 30 s`;
  if (typeof error.code === "number") return `${path} --version exited with code ${error.code}`;
  return `${path} cannot be run (${error.code ?? error.message})`;
}

function quoted(output: string): string {
  return JSON.stringify(output.trim().split("\n", 1)[0]?.slice(0, 60) ?? "");
}
