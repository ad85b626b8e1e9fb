import { spawn, type ChildProcess } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";

import { claimDirectory, openClaim, sealClaim } from "../../src/process/claim.js";
import { processTable } from "../../src/process/process-table.js";
import { compiledScript } from "../support/compiled-script.js";
import {
  type Bench,
  endAll,
  exists,
  isAlive,
  openBench,
  patience,
  pidFrom,
} from "./process-fixtures.js";

const script = new URL("process-worker-script.ts", import.meta.url);

function startWorker(bench: Bench, claim: string, command: string): ChildProcess {
  const args = [compiledScript(script), bench.home, "session-1", claim, bench.cwd, command];
  const worker = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void worker.kill("SIGKILL"));
  return worker;
}

/** The file has stopped growing: its writer is gone, and no process with the call's marks is left. */
async function expectEnded(bench: Bench, claim: string, pids: readonly number[]): Promise<void> {
  await vi.waitFor(async () => {
    for (const pid of pids) expect(await isAlive(pid)).toBe(false);
    expect(
      await processTable.carrying({ LONGHAUL_HOME: bench.home, LONGHAUL_CALL: claim }),
    ).toEqual([]);
  }, patience);
  const content = await bench.content("ticks");
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(await bench.content("ticks")).toBe(content);
}

const stubborn =
  "trap '' TERM INT HUP; echo $$ >leader; while :; do echo tick >>ticks; sleep 0.05; done";

describe("runCommand", { timeout: 40_000 }, () => {
  it("ends a command that ignores TERM within seconds when its worker is killed with -9", async () => {
    const bench = await openBench();
    const worker = startWorker(
      bench,
      "c1",
      `setsid sh -c 'echo $$ >stray; exec sleep 1000' & ${stubborn}`,
    );
    const pids = [await pidFrom(bench, "leader"), await pidFrom(bench, "stray")];
    worker.kill("SIGKILL");
    await expectEnded(bench, "c1", pids);
    const again = await bench.call(
      "bash",
      { command: "touch ran", description: "" },
      { claim: "c1" },
    );
    expect(again.error?.code).toBe("TOOL_OUTCOME_UNKNOWN");
    expect(await exists(join(bench.cwd, "ran"))).toBe(false);
  });

  it("ends a command whose worker stands still, and the worker says so when it goes on", async () => {
    const bench = await openBench();
    const worker = startWorker(bench, "c2", stubborn);
    const leader = await pidFrom(bench, "leader");
    let printed = "";
    worker.stdout?.on("data", (chunk: Buffer) => (printed += chunk.toString()));
    worker.kill("SIGSTOP");
    await expectEnded(bench, "c2", [leader]);
    worker.kill("SIGCONT");
    await vi.waitFor(() => expect(printed).toMatch(/\n$/), patience);
    expect(JSON.parse(printed)).toEqual({
      exitCode: null,
      signal: "SIGKILL",
      endedBy: "lost-watch",
    });
  });

  it("runs on while its worker is alive, and a Ctrl-C in the worker's terminal does not reach it", async () => {
    const bench = await openBench();
    const result = await bench.command("ps -o pid=,pgid=,sess=,tty= -p $$; sleep 5; echo done");
    const [ids = "", done] = result.stdout.tail.toString().trim().split("\n");
    const [pid, group, session, terminal] = ids.trim().split(/\s+/);
    expect([group, session, terminal, done]).toEqual([pid, pid, "?", "done"]);
  });

  it("writes the command's identity before the command runs", async () => {
    const bench = await openBench();
    const marks = bench.marks("c3");
    const result = await bench.command(
      `cat '${join(claimDirectory(marks), "identity.json")}'; echo; echo $$`,
      { marks },
    );
    const [identity = "", pid] = result.stdout.tail.toString().split("\n");
    expect(JSON.parse(identity)).toEqual({
      pid: Number(pid),
      startTime: expect.any(String),
      bootId: await processTable.bootId(),
    });
    expect(await readdir(claimDirectory(marks))).toEqual(["identity.json"]);
  });

  it("does not run when the identity cannot be written", async () => {
    const bench = await openBench();
    const running = bench.command("touch ran", { directory: join(bench.home, "missing") });
    await expect(running).rejects.toMatchObject({ code: "SPAWN_FAILED" });
    expect(await exists(join(bench.cwd, "ran"))).toBe(false);
  });

  it("does not hang on a background child, which gets the grace and is ended", async () => {
    const bench = await openBench();
    const result = await bench.command("sleep 1000 & echo $! >child; echo done");
    expect(result).toMatchObject({ exitCode: 0, signal: null, leftovers: true });
    expect(result.endedBy).toBeUndefined();
    expect(result.stdout.tail.toString()).toBe("done\n");
    expect(await isAlive(await pidFrom(bench, "child"))).toBe(false);
  });

  it("waits for a background child that ends within the grace and keeps its output", async () => {
    const bench = await openBench();
    const result = await bench.command("(sleep 0.5; echo late) & echo early");
    expect(result).toMatchObject({ exitCode: 0, leftovers: false });
    expect(result.stdout.tail.toString()).toBe("early\nlate\n");
  });

  it("leaves a daemon alone that left the group when the command ended by itself, and does not wait for its pipe", async () => {
    const bench = await openBench();
    const marks = bench.marks("c4");
    const result = await bench.command("setsid sleep 1000 & echo $! >daemon; echo done", { marks });
    expect(result).toMatchObject({ exitCode: 0, leftovers: false });
    const daemon = await pidFrom(bench, "daemon");
    expect(await isAlive(daemon)).toBe(true);
    await endAll(marks);
    // Whoever adopted it has to collect it first.
    await vi.waitFor(async () => expect(await isAlive(daemon)).toBe(false), patience);
  });

  it("ends the command when the watch over it is killed", async () => {
    const bench = await openBench();
    const running = bench.command("echo $$ >leader; while :; do sleep 0.1; done");
    const leader = await pidFrom(bench, "leader");
    const watch = (await childrenOf(process.pid)).find((child) =>
      child.command.includes("longhaul-watch"),
    );
    expect(watch).toBeDefined();
    process.kill(watch?.pid ?? 0, "SIGKILL");
    expect(await running).toMatchObject({ endedBy: "lost-watch", signal: "SIGTERM" });
    expect(await isAlive(leader)).toBe(false);
  });

  it("is ended by a seal from elsewhere", async () => {
    const bench = await openBench();
    const marks = bench.marks("c5");
    const running = bench.command(`setsid sh -c 'echo $$ >stray; exec sleep 1000' & ${stubborn}`, {
      marks,
    });
    const pids = [await pidFrom(bench, "leader"), await pidFrom(bench, "stray")];
    expect(await sealClaim(marks)).toBe(true);
    for (const pid of pids) expect(await isAlive(pid)).toBe(false);
    expect(await running).toMatchObject({ signal: "SIGKILL" });
  });

  it("is ended by a seal when worker, watch and shell are gone and only a child of its group is left", async () => {
    const bench = await openBench();
    const child =
      "(trap '' TERM; echo $BASHPID >leader; while :; do echo tick >>ticks; sleep 0.05; done) &";
    const worker = startWorker(bench, "c8", `${child} echo $$ >shell; sleep 1000`);
    const pids = [await pidFrom(bench, "shell"), await pidFrom(bench, "leader")];
    const watch = (await childrenOf(worker.pid ?? 0)).find((one) =>
      one.command.includes("longhaul-watch"),
    );
    expect(watch).toBeDefined();
    process.kill(-(watch?.pid ?? 0), "SIGKILL");
    worker.kill("SIGKILL");
    process.kill(pids[0] ?? 0, "SIGKILL");
    await vi.waitFor(async () => expect(await isAlive(pids[0] ?? 0)).toBe(false), patience);
    expect(await isAlive(pids[1] ?? 0)).toBe(true);
    expect(await sealClaim(bench.marks("c8"))).toBe(true);
    await expectEnded(bench, "c8", pids);
  });

  it("does not run when its claim is sealed before its identity is written", async () => {
    const bench = await openBench();
    const marks = bench.marks("c6");
    await openClaim(marks);
    await sealClaim(marks);
    const running = bench.command("touch ran", { marks, directory: claimDirectory(marks) });
    await expect(running).rejects.toMatchObject({ code: "TOOL_NOT_STARTED" });
    expect(await exists(join(bench.cwd, "ran"))).toBe(false);
  });

  it("takes 50 MB of output in one go", async () => {
    const bench = await openBench();
    const marks = bench.marks("c7");
    const result = await bench.command("yes | head -c 50000000", { marks });
    expect(result).toMatchObject({ exitCode: 0, leftovers: false });
    expect(result.stdout.total).toBe(50_000_000);
    expect(result.stdout.stored).toBe(50_000_000);
    expect(result.stdout.tail.toString()).toBe("y\n".repeat(32_000));
    expect(await bench.store.size("session-1", "spill/c7.stdout")).toBe(50_000_000);
  });

  it("stores at most 64 MiB of a stream and goes on with its tail", async () => {
    const bench = await openBench();
    const result = await bench.command("head -c 70000000 /dev/zero; printf end");
    expect(result.stdout.total).toBe(70_000_003);
    expect(result.stdout.stored).toBe(64 * 1024 * 1024);
    expect(result.stdout.tail.subarray(-4).toString()).toBe("\0end");
  });

  it("leaves no process and no descriptor after 200 commands in a row", async () => {
    const bench = await openBench();
    await bench.command("true");
    const before = {
      files: (await readdir("/dev/fd")).length,
      children: await childrenOf(process.pid),
    };
    for (let index = 0; index < 200; index += 1) {
      const result = await bench.command(`echo ${index}`);
      expect(result.stdout.tail.toString()).toBe(`${index}\n`);
    }
    await vi.waitFor(async () => {
      expect((await readdir("/dev/fd")).length).toBeLessThanOrEqual(before.files);
      expect(await childrenOf(process.pid)).toEqual(before.children);
    }, patience);
  });

  it("runs many commands at once without mixing their output", async () => {
    const bench = await openBench();
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        bench.command(`sleep 0.1; echo ${index}; exit ${index}`),
      ),
    );
    expect(results.map((result) => result.exitCode)).toEqual(results.map((_, index) => index));
    expect(results.map((result) => result.stdout.tail.toString())).toEqual(
      results.map((_, index) => `${index}\n`),
    );
  });
});

async function childrenOf(parent: number): Promise<{ pid: number; command: string }[]> {
  const { execFile } = await import("node:child_process");
  const { promisify } = await import("node:util");
  const { stdout } = await promisify(execFile)("ps", ["-axo", "pid=,ppid=,command="]);
  return stdout
    .split("\n")
    .map((line) => /^\s*(\d+)\s+(\d+)\s(.*)$/.exec(line))
    .filter((match) => match?.[2] === String(parent) && !match[3]?.startsWith("ps -axo"))
    .map((match) => ({ pid: Number(match?.[1]), command: match?.[3] ?? "" }));
}
