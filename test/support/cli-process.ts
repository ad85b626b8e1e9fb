import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished, vi } from "vitest";

export const cliPath = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

/** The environment of a fresh user: nothing that names a cluster, a model or a data directory. */
export function userEnvironment(more: Readonly<Record<string, string>>): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value === undefined || /^(?:TEMPORAL|LONGHAUL|VITEST|NO_COLOR|npm)/.test(name)) continue;
    env[name] = value;
  }
  const binary = process.env["LONGHAUL_TEMPORAL_CLI"];
  return {
    ...env,
    NODE_ENV: "production",
    LANG: "C.UTF-8",
    ...(binary === undefined ? {} : { LONGHAUL_TEMPORAL_CLI: binary }),
    ...more,
  };
}

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  /** Resolves when the process and its outputs have ended. */
  readonly ended: Promise<CliResult>;
  /** Resolves when stdout matches; rejects with all output when the process ends before. */
  shows(pattern: RegExp | string): Promise<void>;
}

export interface CliOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
}

/** A real process of the built command line; killed with its test at the latest. */
export function startCli(args: readonly string[], options: CliOptions): CliProcess {
  const child = spawn(process.execPath, [cliPath, ...args], {
    env: { ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (piece: string) => (stdout += piece));
  child.stderr.setEncoding("utf8").on("data", (piece: string) => (stderr += piece));
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.stdin ?? "");
  const ended = new Promise<CliResult>((resolve) => {
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
  const shows = async (pattern: RegExp | string) => {
    await vi.waitFor(
      () => {
        const there = typeof pattern === "string" ? stdout.includes(pattern) : pattern.test(stdout);
        if (there) return;
        throw new Error(
          `waited for ${pattern}, got (exit ${child.exitCode}):\n${stdout}\n${stderr}`,
        );
      },
      { timeout: 120_000, interval: 25 },
    );
  };
  return {
    child,
    pid: child.pid ?? -1,
    stdout: () => stdout,
    stderr: () => stderr,
    ended,
    shows,
  };
}

/** As `startCli`, gone with the test that starts it. */
export function startCliInTest(args: readonly string[], options: CliOptions): CliProcess {
  const started = startCli(args, options);
  onTestFinished(async () => {
    started.child.kill("SIGKILL");
    await started.ended;
  });
  return started;
}

export function runCliProcess(args: readonly string[], options: CliOptions): Promise<CliResult> {
  return startCliInTest(args, options).ended;
}
