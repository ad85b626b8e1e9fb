import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";

/** A process for good: a pid alone may be given to another program later. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in a form that only equality is asked of. */
  readonly started: string;
}

export interface RunningProcess extends ProcessIdentity {
  /** Its arguments joined by single spaces; empty when they cannot be read. */
  readonly command: string;
}

/** The living process with this pid; a zombie counts as gone. */
export async function findProcess(pid: number): Promise<RunningProcess | undefined> {
  if (process.platform === "linux") return findInProc(pid);
  if (process.platform === "win32") return (await listWindows(`ProcessId=${pid}`))[0];
  return (await listWithPs(["-p", String(pid)]))[0];
}

/** The living processes whose command contains this text, oldest pid first. */
export async function findProcessesByCommand(text: string): Promise<RunningProcess[]> {
  const all = await listProcesses();
  return all.filter((found) => found.command.includes(text)).toSorted((a, b) => a.pid - b.pid);
}

export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  return (await findProcess(identity.pid))?.started === identity.started;
}

let own: Promise<ProcessIdentity> | undefined;

/** This process. */
export function ownIdentity(): Promise<ProcessIdentity> {
  own ??= findProcess(process.pid).then((found) => {
    if (found === undefined) throw new Error(`cannot read the start time of pid ${process.pid}`);
    return { pid: found.pid, started: found.started };
  });
  return own;
}

/**
 * Signals the process if it is still the one meant. False when it is gone, or its pid belongs to another
 * program by now.
 */
export async function signalProcess(
  identity: ProcessIdentity,
  signal: "SIGTERM" | "SIGKILL",
): Promise<boolean> {
  if (!(await isAlive(identity))) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}

async function listProcesses(): Promise<RunningProcess[]> {
  if (process.platform === "win32") return listWindows(undefined);
  if (process.platform !== "linux") return listWithPs(["-A"]);
  const names = await readdir("/proc");
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(pids.map(findInProc));
  return found.filter((entry) => entry !== undefined);
}

let bootId: Promise<string> | undefined;

/** Start times count from boot, so the boot is part of them. */
function currentBoot(): Promise<string> {
  bootId ??= readFile("/proc/sys/kernel/random/boot_id", "utf8").then(
    (text) => text.trim().slice(0, 13),
    () => "boot",
  );
  return bootId;
}

async function findInProc(pid: number): Promise<RunningProcess | undefined> {
  try {
    const line = await readFile(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in brackets and may itself hold spaces and brackets.
    const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
    const state = fields[0] ?? "X";
    const ticks = fields[19];
    // Of a dying process with threads the first shows as a zombie while others still hold its ports.
    const lastThread = Number(fields[17]) <= 1;
    if ((state === "Z" && lastThread) || state === "X" || ticks === undefined) return undefined;
    const args = await readFile(`/proc/${pid}/cmdline`, "utf8");
    const command = args.replace(/\0+$/, "").replaceAll("\0", " ");
    return { pid, started: `${await currentBoot()}/${ticks}`, command };
  } catch {
    return undefined;
  }
}

/** For macOS and the BSDs. The zone and language are fixed, because the start time comes as local text. */
export async function listWithPs(selection: readonly string[]): Promise<RunningProcess[]> {
  const env = { PATH: process.env["PATH"] ?? "/bin:/usr/bin", TZ: "UTC", LC_ALL: "C" };
  const columns = ["-ww", "-o", "pid=", "-o", "stat=", "-o", "lstart=", "-o", "command="];
  const text = await output("ps", [...selection, ...columns], env);
  return text.split("\n").flatMap((line) => {
    const match = /^\s*(\d+)\s+(\S+)\s+(\S+\s+\S+\s+\d+\s+[\d:]+\s+\d+)\s(.*)$/.exec(line);
    if (match === null || match[2]?.startsWith("Z") === true) return [];
    const started = (match[3] ?? "").replaceAll(/\s+/g, " ");
    return [{ pid: Number(match[1]), started, command: (match[4] ?? "").trim() }];
  });
}

async function listWindows(filter: string | undefined): Promise<RunningProcess[]> {
  const select =
    `Get-CimInstance Win32_Process ${filter === undefined ? "" : `-Filter '${filter}'`} | ` +
    'ForEach-Object { "$($_.ProcessId) $($_.CreationDate.ToFileTimeUtc()) $($_.CommandLine)" }';
  const text = await output("powershell", ["-NoProfile", "-Command", select], process.env);
  return text.split(/\r?\n/).flatMap((line) => {
    const match = /^(\d+) (\d+) ?(.*)$/.exec(line);
    if (match === null) return [];
    return [{ pid: Number(match[1]), started: match[2] ?? "", command: match[3] ?? "" }];
  });
}

/** What the program printed; a failure prints nothing that matches. */
function output(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const options = { env, maxBuffer: 64 << 20, encoding: "utf8" } as const;
  return new Promise((resolve) => {
    execFile(program, args, options, (_error, stdout) => resolve(stdout));
  });
}
