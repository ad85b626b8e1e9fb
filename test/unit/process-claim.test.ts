import { execFile } from "node:child_process";
import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

import type { ToolOutcome } from "../../src/contracts/tools.js";
import {
  claimDirectory,
  openClaim,
  recordOutcome,
  sealClaim,
  createClaimSweep,
  sweepClaims,
} from "../../src/process/claim.js";
import { processTable } from "../../src/process/process-table.js";
import { compiledScript } from "../support/compiled-script.js";
import { exists, isAlive, openBench, pidFrom, textOf } from "./process-fixtures.js";

const outcome: ToolOutcome = {
  content: [{ type: "text", text: "done" }],
  isError: false,
  meta: { bytes: 4 },
};
const day = 24 * 3_600_000;

describe("a claim", { timeout: 30_000 }, () => {
  it("is new for one of many that open it at once", async () => {
    const bench = await openBench();
    const opened = await Promise.all(
      Array.from({ length: 50 }, () => openClaim(bench.marks("1.1.a"))),
    );
    expect(opened.filter((one) => one.kind === "new")).toHaveLength(1);
    expect(opened.filter((one) => one.kind === "taken")).toHaveLength(49);
  });

  it("is new for one of several processes", async () => {
    const bench = await openBench();
    const script = compiledScript(new URL("process-worker-script.ts", import.meta.url));
    const args = [script, bench.home, "session-1", "1.1.a", bench.cwd, "echo ran >>runs"];
    const runs = await Promise.allSettled(
      Array.from({ length: 4 }, () => promisify(execFile)(process.execPath, args)),
    );
    expect(runs.filter((run) => run.status === "fulfilled")).toHaveLength(1);
    expect(await bench.content("runs")).toBe("ran\n");
  });

  it("gives the recorded outcome to a later start", async () => {
    const bench = await openBench();
    const opened = await openClaim(bench.marks("1.1.a"));
    if (opened.kind !== "new") throw new Error("the claim must be new");
    await recordOutcome(opened.claim, outcome);
    expect(await openClaim(bench.marks("1.1.a"))).toEqual({ kind: "recorded", outcome });
    expect(await readdir(opened.claim.directory)).toEqual(["result.json"]);
  });

  it("stays taken when its record is damaged", async () => {
    const bench = await openBench();
    await openClaim(bench.marks("1.1.a"));
    await writeFile(join(claimDirectory(bench.marks("1.1.a")), "result.json"), '{"content":[{"ty');
    expect(await openClaim(bench.marks("1.1.a"))).toEqual({ kind: "taken" });
  });

  it("is one directory below the claims folder for any id, and never that of another id", async () => {
    const bench = await openBench();
    const ids = [
      "a",
      "A",
      "..",
      ".",
      "",
      "a/b",
      "a_b",
      "ü",
      "x".repeat(500),
      `${"x".repeat(500)}y`,
      "a\0b",
    ];
    const directories = ids.map((claim) => claimDirectory(bench.marks(claim)));
    expect(new Set(directories.map((path) => path.toLowerCase())).size).toBe(ids.length);
    for (const path of directories) {
      expect(path.startsWith(join(bench.home, "host", "claims"))).toBe(true);
      expect(path.slice(bench.home.length).split("/")).toHaveLength(5);
    }
    for (const claim of ids) expect((await openClaim(bench.marks(claim))).kind).toBe("new");
  });

  it("can never start after a seal while it was absent", async () => {
    const bench = await openBench();
    expect(await sealClaim(bench.marks("1.1.a"))).toBe(true);
    expect(await sealClaim(bench.marks("1.1.a"))).toBe(true);
    expect(await openClaim(bench.marks("1.1.a"))).toEqual({ kind: "taken" });
    const late = await bench.call("write", { path: "late", content: "x" }, { claim: "1.1.a" });
    expect(late.error?.code).toBe("TOOL_OUTCOME_UNKNOWN");
    expect(await exists(join(bench.cwd, "late"))).toBe(false);
  });

  it("ends the running command and all its processes at a seal", async () => {
    const bench = await openBench();
    const command = "sleep 1000 & echo $! >child; wait";
    const running = bench.call("bash", { command, description: "" }, { claim: "1.1.a" });
    const child = await pidFrom(bench, "child");
    expect(await sealClaim(bench.marks("1.1.a"))).toBe(true);
    expect(await isAlive(child)).toBe(false);
    expect(textOf(await running)).toBe("(no output)\n[signal: SIGTERM]");
  });

  it("seals without touching a process that has the recorded pid but is another one", async () => {
    const bench = await openBench();
    const running = bench.command("echo $$ >leader; exec sleep 1000 & wait", {
      marks: bench.marks("other"),
    });
    const pid = await pidFrom(bench, "leader");
    const bootId = await processTable.bootId();
    const startTime = (await processTable.startTime(pid)) ?? "";
    const strangers = [
      { pid, startTime: `${startTime}0`, bootId },
      { pid, startTime, bootId: "an earlier boot" },
    ];
    for (const [index, identity] of strangers.entries()) {
      const marks = bench.marks(`stale-${index}`);
      await openClaim(marks);
      await writeFile(join(claimDirectory(marks), "identity.json"), JSON.stringify(identity));
      expect(await sealClaim(marks)).toBe(true);
      expect(await isAlive(pid)).toBe(true);
    }
    await sealClaim(bench.marks("other"));
    await running;
  });

  it("is swept when it is old and closed, and kept when it is young or open", async () => {
    const bench = await openBench();
    const now = Date.now();
    for (const claim of ["done", "sealed", "open", "young"]) await openClaim(bench.marks(claim));
    for (const claim of ["done", "young"])
      await recordOutcome({ directory: claimDirectory(bench.marks(claim)) }, outcome);
    await sealClaim(bench.marks("sealed"));
    const old = new Date(now - 8 * day);
    await utimes(join(claimDirectory(bench.marks("done")), "result.json"), old, old);
    await utimes(join(claimDirectory(bench.marks("sealed")), "sealed"), old, old);
    await utimes(claimDirectory(bench.marks("open")), old, old);
    expect(await sweepClaims(bench.home, undefined, now)).toBe(2);
    expect((await openClaim(bench.marks("young"))).kind).toBe("recorded");
    expect((await openClaim(bench.marks("open"))).kind).toBe("taken");
    expect(await exists(claimDirectory(bench.marks("done")))).toBe(false);
    expect(await sweepClaims(bench.home, undefined, now + 8 * day)).toBe(1);
    expect(await sweepClaims(join(bench.home, "nowhere"))).toBe(0);
  });

  it("is swept by a worker that runs on too, once a day", async () => {
    const bench = await openBench();
    let now = Date.now();
    const sweep = createClaimSweep(bench.home, () => now);
    await sweep();
    const directory = claimDirectory(bench.marks("done"));
    await openClaim(bench.marks("done"));
    await recordOutcome({ directory }, outcome);
    const old = new Date(now - 8 * day);
    await utimes(join(directory, "result.json"), old, old);
    now += day - 1;
    await sweep();
    expect(await exists(directory)).toBe(true);
    now += 1;
    await sweep();
    expect(await exists(directory)).toBe(false);
  });

  it("opens while its session's empty directory is swept away again and again", async () => {
    const bench = await openBench();
    await mkdir(join(bench.home, "host", "claims"), { recursive: true });
    let sweeping = true;
    const sweeper = (async () => {
      while (sweeping) await sweepClaims(bench.home, -day);
    })();
    for (let index = 0; index < 50; index += 1) {
      const opened = await openClaim(bench.marks(`1.1.${index}`));
      if (opened.kind !== "new") throw new Error("the claim must be new");
      await recordOutcome(opened.claim, outcome).catch(() => {});
      expect(opened.claim.directory).toBe(claimDirectory(bench.marks(`1.1.${index}`)));
    }
    sweeping = false;
    await sweeper;
  });
});
