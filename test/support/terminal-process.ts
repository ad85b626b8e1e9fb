import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished, vi } from "vitest";
import { cliPath } from "./cli-process.js";
import { EmulatedScreen } from "./screen.js";

export interface TerminalProcess {
  readonly screen: EmulatedScreen;
  /** All output as it came, escape sequences included. */
  raw(): string;
  type(text: string): void;
  resize(rows: number, columns: number): void;
  /** Resolves when the screen, with its scrollback, matches. */
  shows(pattern: RegExp | string): Promise<void>;
  readonly ended: Promise<number | null>;
}

export interface TerminalOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly rows?: number;
  readonly columns?: number;
}

const bridge = fileURLToPath(new URL("pty-bridge.py", import.meta.url));

/** The built command line on a pseudo-terminal (python3 makes it: Node cannot), gone with its test. */
export function startOnTerminal(
  args: readonly string[],
  { env, cwd, rows = 40, columns = 80 }: TerminalOptions,
): TerminalProcess {
  const command = [bridge, String(rows), String(columns), process.execPath, cliPath, ...args];
  const child = spawn("python3", command, {
    env: { TERM: "xterm-256color", ...env },
    stdio: ["pipe", "pipe", "inherit"],
    ...(cwd === undefined ? {} : { cwd }),
  });
  const screen = new EmulatedScreen(rows, columns);
  let raw = "";
  let broken: unknown;
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    raw += piece;
    try {
      screen.write(piece);
    } catch (error) {
      broken ??= error;
    }
  });
  child.stdin.on("error", () => undefined);
  const say = (message: object) => child.stdin.write(`${JSON.stringify(message)}\n`);
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  onTestFinished(async () => {
    // Its child gets SIGHUP when the terminal goes.
    child.kill("SIGKILL");
    await ended;
    if (broken !== undefined) throw broken;
  });
  return {
    screen,
    raw: () => raw,
    type: (text) => say({ input: text }),
    resize(newRows, newColumns) {
      screen.rows = newRows;
      screen.columns = newColumns;
      say({ resize: [newRows, newColumns] });
    },
    async shows(pattern) {
      await vi.waitFor(
        () => {
          if (broken !== undefined) throw broken;
          const text = screen.text();
          if (typeof pattern === "string" ? text.includes(pattern) : pattern.test(text)) return;
          throw new Error(`waited for ${pattern}, the terminal shows:\n${text}`);
        },
        { timeout: 120_000, interval: 25 },
      );
    },
    ended,
  };
}
