import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";

/** What the operating system knows about processes. A zombie counts as gone. */
export interface ProcessTable {
  /** Names this boot of the machine, so that a pid of an earlier one is never signalled. */
  bootId(): Promise<string>;
  /** An opaque start time, equal for one process as long as it lives; undefined when there is none. */
  startTime(pid: number): Promise<string | undefined>;
  /** Living members of a process group. */
  members(group: number): Promise<readonly number[]>;
  /** Living processes whose first environment had all these variables; best effort. */
  carrying(variables: Readonly<Record<string, string>>): Promise<readonly number[]>;
}

/** Linux, from /proc. */
export const procTable: ProcessTable = {
  async bootId() {
    return (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
  },

  async startTime(pid) {
    const fields = statOf(pid);
    return fields === undefined || isZombie(fields) ? undefined : fields[19];
  },

  async members(group) {
    const found: number[] = [];
    for (const pid of await pids()) {
      const fields = statOf(pid);
      if (fields !== undefined && fields[2] === String(group) && !isZombie(fields)) found.push(pid);
    }
    return found;
  },

  async carrying(variables) {
    const wanted = Object.entries(variables).map(([name, value]) =>
      Buffer.from(`${name}=${value}\0`),
    );
    const found: number[] = [];
    for (const pid of await pids()) {
      if (pid === process.pid) continue;
      const environment = readOrUndefined(`/proc/${pid}/environ`);
      if (environment !== undefined && wanted.every((entry) => holdsEntry(environment, entry)))
        found.push(pid);
    }
    return found;
  },
};

const run = promisify(execFile);

/** Any Unix with `ps`; `environmentFlags` are those that make it print environments (macOS: `-axEww`). */
export function psTable(environmentFlags: readonly string[] = ["-axEww"]): ProcessTable {
  return {
    async bootId() {
      const { stdout } = await run("sysctl", ["-n", "kern.bootsessionuuid"]);
      return stdout.trim();
    },

    async startTime(pid) {
      const line = (await ps(["-o", "stat=,lstart=", "-p", String(pid)])).trim();
      return line === "" || line.startsWith("Z") ? undefined : line.replace(/^\S+\s+/, "");
    },

    async members(group) {
      const found: number[] = [];
      for (const line of (await ps(["-axo", "pid=,pgid=,stat="])).split("\n")) {
        const [pid, pgid, stat] = line.trim().split(/\s+/);
        if (pgid === String(group) && stat?.startsWith("Z") === false) found.push(Number(pid));
      }
      return found;
    },

    async carrying(variables) {
      const wanted = Object.entries(variables).map(([name, value]) => ` ${name}=${value}`);
      const found: number[] = [];
      for (const line of (await ps([...environmentFlags, "-o", "pid=,command="])).split("\n")) {
        const pid = Number.parseInt(line, 10);
        if (pid !== process.pid && wanted.every((entry) => `${line} `.includes(`${entry} `)))
          found.push(pid);
      }
      return found;
    },
  };
}

/** The table of this machine. */
export const processTable: ProcessTable = process.platform === "linux" ? procTable : psTable();

async function ps(args: readonly string[]): Promise<string> {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  try {
    return (await run("ps", [...args], { env, maxBuffer: 64 * 1024 * 1024 })).stdout;
  } catch (error) {
    // ps exits 1 when no process matches.
    if (error instanceof Error && "code" in error && error.code === 1) return "";
    throw error;
  }
}

async function pids(): Promise<number[]> {
  return (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
}

/** Fields from the state on: 0 state, 2 process group, 19 start time. The name before them may hold anything. */
function statOf(pid: number): string[] | undefined {
  const text = readOrUndefined(`/proc/${pid}/stat`)?.toString("latin1");
  return text?.slice(text.lastIndexOf(")") + 2).split(" ");
}

function isZombie(fields: readonly string[]): boolean {
  return fields[0] === "Z" || fields[0] === "X";
}

function readOrUndefined(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

function holdsEntry(environment: Buffer, entry: Buffer): boolean {
  for (let at = environment.indexOf(entry); at >= 0; at = environment.indexOf(entry, at + 1)) {
    if (at === 0 || environment[at - 1] === 0) return true;
  }
  return false;
}
