import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** A program that is started again and again with the same arguments, and killed in between. */
export class Program {
  readonly #command: readonly [string, ...string[]];
  readonly #env: NodeJS.ProcessEnv;
  readonly #log: string;
  #child: ChildProcess | undefined;
  #exit: Promise<void> = Promise.resolve();
  #meant = true;
  /** How it ended when nobody here had killed it. */
  readonly surprises: string[] = [];

  constructor(command: readonly [string, ...string[]], env: NodeJS.ProcessEnv, log: string) {
    this.#command = command;
    this.#env = env;
    this.#log = log;
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error(`${this.#command.join(" ")} is not running`);
    return pid;
  }

  start(): void {
    if (this.#child !== undefined) throw new Error(`${this.#command[0]} runs already`);
    const [file, ...args] = this.#command;
    const log = openSync(this.#log, "a");
    const child = spawn(file, args, { env: this.#env, stdio: ["ignore", log, log], cwd: "/" });
    closeSync(log);
    this.#child = child;
    this.#meant = false;
    this.#exit = new Promise((resolve) => {
      const gone = (how: string): void => {
        if (!this.#meant)
          this.surprises.push(`${[file, ...args].join(" ")} ended by itself: ${how}`);
        if (this.#child === child) this.#child = undefined;
        resolve();
      };
      child.once("error", (error) => gone(error.message));
      child.once("exit", (code, signal) => gone(signal ?? `exit code ${code}`));
    });
  }

  /** How often the log, which all starts append to, has this text. */
  said(text: string): number {
    return this.#text().split(text).length - 1;
  }

  lastLines(count: number): string {
    return this.#text().trimEnd().split("\n").slice(-count).join("\n");
  }

  #text(): string {
    return existsSync(this.#log) ? readFileSync(this.#log, "utf8") : "";
  }

  /** SIGKILL, and until it is gone; also when it is frozen. */
  async kill(): Promise<void> {
    this.#meant = true;
    this.#child?.kill("SIGKILL");
    await this.#exit;
  }

  /** SIGSTOP, and until every thread of it stands. */
  async freeze(): Promise<void> {
    const { pid } = this;
    process.kill(pid, "SIGSTOP");
    for (;;) {
      const state = /^\d+ \(.*\) (\w)/s.exec(await readFile(`/proc/${pid}/stat`, "utf8"))?.[1];
      if (state === "T") return;
      await delay(2);
    }
  }

  thaw(): void {
    process.kill(this.pid, "SIGCONT");
  }
}

/** Commands of tool calls, and what watches over them, that name this directory: by environment and arguments. */
export async function commandsUnder(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const [environ, cmdline] = await Promise.all(
      ["environ", "cmdline"].map((name) =>
        readFile(`/proc/${pid}/${name}`, "utf8").catch(() => ""),
      ),
    );
    const variables = (environ ?? "").split("\0");
    const call = variables.find((variable) => variable.startsWith("LONGHAUL_CALL="));
    const ours = variables.some(
      (variable) => variable.startsWith("LONGHAUL_HOME=") && variable.includes(directory),
    );
    const watch = cmdline?.includes("longhaul-watch") === true && cmdline.includes(directory);
    if ((call !== undefined && ours) || watch)
      found.push(
        `pid ${pid} ${call ?? "watch"}: ${(cmdline ?? "").replaceAll(/[\0\n]/g, " ").slice(0, 120)}`,
      );
  }
  return found;
}
