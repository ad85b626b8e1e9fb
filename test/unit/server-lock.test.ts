import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { withLock } from "../../src/server/lock.js";
import {
  findProcess,
  findProcessesByCommand,
  isAlive,
  listWithPs,
  ownIdentity,
  signalProcess,
} from "../../src/server/process-identity.js";
import { compiledScript } from "../support/compiled-script.js";

let directory: string;
let children: ChildProcess[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "longhaul-lock-"));
  children = [];
});
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

const lock = () => join(directory, "lock");
const options = { waitMs: 30_000, onTimeout: () => new Error("waited too long") };

function node(code: string): ChildProcess {
  const module = pathToFileURL(
    compiledScript(new URL("../../src/server/lock.ts", import.meta.url)),
  ).href;
  const prelude = `const { withLock } = await import(${JSON.stringify(module)});`;
  const args = ["--input-type=module", "-e", prelude + code];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return child;
}

const exited = (child: ChildProcess) =>
  new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));

describe("the lock", () => {
  test("work of many callers in one process does not overlap", async () => {
    let inside = 0;
    let most = 0;
    const work = async () => {
      inside += 1;
      most = Math.max(most, inside);
      await delay(1);
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 8 }, () => withLock(lock(), options, work)));
    expect(most).toBe(1);
    expect(readdirSync(lock())).toHaveLength(1);
  });

  test("no count is lost between processes, also when holders are killed on the way", async () => {
    const file = join(directory, "count");
    writeFileSync(file, "0");
    const count = `
      import { readFileSync, writeFileSync } from "node:fs";
      const options = { waitMs: 60000, onTimeout: () => new Error("waited too long") };
      for (let i = 0; i < 40; i += 1) {
        await withLock(${JSON.stringify(lock())}, options, async () => {
          const before = Number(readFileSync(${JSON.stringify(file)}, "utf8"));
          await new Promise((resolve) => setImmediate(resolve));
          writeFileSync(${JSON.stringify(file)}, String(before + 1));
        });
      }`;
    const hang = `await withLock(${JSON.stringify(lock())}, { waitMs: 60000, onTimeout: () => new Error() }, () => {
      console.log("holding");
      return new Promise(() => setInterval(() => {}, 1000));
    });`;
    const holder = node(hang);
    await new Promise((resolve) => holder.stdout?.once("data", resolve));
    const counters = [node(count), node(count), node(count)];
    const ends = counters.map(exited);
    holder.kill("SIGKILL");
    expect(await Promise.all(ends)).toEqual([0, 0, 0]);
    expect(readFileSync(file, "utf8")).toBe("120");
  }, 60_000);

  test("a holder that is alive is waited for, named once, and given up in the end", async () => {
    const me = await ownIdentity();
    const told: number[] = [];
    let open = () => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const first = withLock(lock(), options, () => gate);
    await vi.waitFor(() => expect(readdirSync(lock())).toHaveLength(1), { timeout: 10_000 });
    const impatient = {
      waitMs: 200,
      onWait: (holder: { pid: number }) => told.push(holder.pid),
      onTimeout: () => new Error("waited too long"),
    };
    await expect(withLock(lock(), impatient, () => Promise.resolve())).rejects.toThrow("too long");
    expect(told).toEqual([me.pid]);
    open();
    await first;
    await withLock(lock(), impatient, () => Promise.resolve());
  });

  test("a file left by a dead holder, a reused pid or a power cut is passed", async () => {
    for (const left of [
      '{"pid":1,"started":"before"}',
      `{"pid":${process.pid},"started":"x"}`,
      "",
    ]) {
      mkdirSync(lock(), { recursive: true });
      writeFileSync(join(lock(), "7"), left);
      expect(await withLock(lock(), options, () => Promise.resolve("in"))).toBe("in");
      expect(readdirSync(lock())).toEqual(["8"]);
      rmSync(lock(), { recursive: true });
    }
  });

  test("failing work frees the lock", async () => {
    await expect(withLock(lock(), options, () => Promise.reject(new Error("no")))).rejects.toThrow(
      "no",
    );
    expect(await withLock(lock(), options, () => Promise.resolve(1))).toBe(1);
  });
});

describe("the identity of a process", () => {
  test("a process is found with its command and start, and is gone once it ended", async () => {
    const child = spawn("sleep", ["31.7777"]);
    children.push(child);
    const found = await findProcess(child.pid ?? 0);
    expect(found).toMatchObject({ pid: child.pid, command: "sleep 31.7777" });
    expect((await findProcessesByCommand("sleep 31.7777")).map((one) => one.pid)).toContain(
      child.pid,
    );
    if (found === undefined) return;
    expect(await isAlive(found)).toBe(true);
    const end = exited(child);
    expect(await signalProcess(found, "SIGTERM")).toBe(true);
    await end;
    expect(await isAlive(found)).toBe(false);
    expect(await signalProcess(found, "SIGTERM")).toBe(false);
  });

  test("a pid that another program has by now gets no signal", async () => {
    const child = spawn("sleep", ["30"]);
    children.push(child);
    const stale = { pid: child.pid ?? 0, started: "earlier" };
    expect(await signalProcess(stale, "SIGKILL")).toBe(false);
    expect(await findProcess(stale.pid)).toBeDefined();
  });

  test.runIf(process.platform === "linux")("a zombie counts as gone", async () => {
    // The shell's child ends at once and is not waited for, because the shell became sleep.
    const parent = spawn("sh", ["-c", 'sh -c "echo \\$\\$" & exec sleep 30'], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    children.push(parent);
    const pid = Number(await new Promise<Buffer>((resolve) => parent.stdout.once("data", resolve)));
    await vi.waitFor(() => expect(readFileSync(`/proc/${pid}/stat`, "utf8")).toMatch(/\) Z /), {
      timeout: 10_000,
    });
    expect(await findProcess(pid)).toBeUndefined();
  });

  test("ps tells the same process by the same words each time, in any zone", async () => {
    const [first] = await listWithPs(["-p", String(process.pid)]);
    expect(first?.pid).toBe(process.pid);
    expect(first?.started).toMatch(/^\w{3} \w{3} \d+ [\d:]{8} \d{4}$/);
    expect(first?.command).toContain("node");
    const zone = process.env["TZ"];
    process.env["TZ"] = "Asia/Tokyo";
    const [second] = await listWithPs(["-p", String(process.pid)]);
    if (zone === undefined) delete process.env["TZ"];
    else process.env["TZ"] = zone;
    expect(second?.started).toBe(first?.started);
  });
});
