import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";

import { bashTool } from "../../src/tools/bash.js";
import { brokenStore, isAlive, openBench, pidFrom, textOf } from "./process-fixtures.js";

const bash = (command: string, more: object = {}) => ({ command, description: "test", ...more });

describe("bash", { timeout: 30_000 }, () => {
  it("gives stdout, then the [stderr] part, then the exit marker, and is no error at exit 3 [harness/B1]", async () => {
    const bench = await openBench();
    const outcome = await bench.call("bash", bash("echo out; echo err >&2; exit 3"));
    expect(outcome).toEqual({
      content: [{ type: "text", text: "out\n[stderr]\nerr\n[exit code: 3]" }],
      isError: false,
      meta: { exitCode: 3, signal: null, timedOut: false },
    });
  });

  it("says (no output) for a silent command", async () => {
    const bench = await openBench();
    expect(textOf(await bench.call("bash", bash("true")))).toBe("(no output)");
    expect(textOf(await bench.call("bash", bash("false")))).toBe("(no output)\n[exit code: 1]");
  });

  it("tells a signal from an exit code above 128", async () => {
    const bench = await openBench();
    const killed = await bench.call("bash", bash("kill -KILL $$"));
    expect(textOf(killed)).toBe("(no output)\n[signal: SIGKILL]");
    expect(killed.meta).toEqual({ exitCode: null, signal: "SIGKILL", timedOut: false });
    expect(textOf(await bench.call("bash", bash("exit 137")))).toBe(
      "(no output)\n[exit code: 137]",
    );
  });

  it("stays timed out when the command traps TERM and exits 0 [harness/B2]", async () => {
    const bench = await openBench();
    const command = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    const outcome = await bench.call("bash", bash(command, { timeoutMs: 500 }));
    expect(outcome.isError).toBe(false);
    // The shell may report its own ended child on stderr.
    expect(textOf(outcome)).toMatch(
      /^ready\nbye\n(?:\[stderr\]\nTerminated\n)?\[timed out after 500 ms\]$/,
    );
    expect(outcome.meta).toEqual({ exitCode: 0, signal: null, timedOut: true });
  });

  it("keeps the tail of 1 MB of stdout and says where all of it is [harness/B3]", async () => {
    const bench = await openBench();
    const outcome = await bench.call(
      "bash",
      bash("for i in $(seq 10000); do printf '%099d\\n' $i; done"),
    );
    const text = textOf(outcome);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(50_000);
    expect(Buffer.byteLength(text)).toBeGreaterThan(49_000);
    const locator = bench.store.locator("session-1", "spill/1.1.call-1.stdout");
    expect(text).toContain(
      `${"10000".padStart(99, "0")}\n[stdout is cut to its end; all 1000000 bytes: ${locator}]`,
    );
    expect(await bench.store.size("session-1", "spill/1.1.call-1.stdout")).toBe(1_000_000);
    const head = await bench.store.read("session-1", "spill/1.1.call-1.stdout", 0, 100);
    expect(Buffer.from(head).toString()).toBe(`${"1".padStart(99, "0")}\n`);
    expect(await bench.store.size("session-1", "spill/1.1.call-1.stderr")).toBeUndefined();
  });

  it("shows both streams within the limit when both are cut", async () => {
    const bench = await openBench();
    const outcome = await bench.call("bash", bash("seq 50000; seq 50000 >&2; exit 1"));
    const text = textOf(outcome);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(50_000);
    expect(text).toMatch(
      /50000\n\[stderr\]\n[\d\n]+50000\n\[stdout is cut.*\]\n\[stderr is cut.*\]\n\[exit code: 1\]$/,
    );
  });

  it("gives the tail inline and says so when the store is down", async () => {
    const bench = await openBench();
    const outcome = await bench.call("bash", bash("seq 50000"), {
      store: brokenStore(bench.store),
    });
    expect(outcome.isError).toBe(false);
    expect(textOf(outcome)).toContain(
      "\n50000\n[stdout is cut to its end, 288894 bytes in all; full output: (unavailable)]",
    );
  });

  it("runs each session in its own directory, and a relative workdir from there [harness/B4]", async () => {
    const bench = await openBench();
    const [one, two] = [join(bench.home, "one"), join(bench.home, "two")];
    for (const path of [one, two]) await mkdir(join(path, "sub"), { recursive: true });
    const [a, b, c] = await Promise.all([
      bench.call("bash", bash("pwd"), { cwd: one }),
      bench.call("bash", bash("pwd"), { cwd: two }),
      bench.call("bash", bash("pwd", { workdir: "sub" }), { cwd: two }),
    ]);
    expect([a, b, c].map(textOf)).toEqual([one, two, join(two, "sub")]);
  });

  it("names a directory behind a symlink as it was given", async () => {
    const bench = await openBench();
    await symlink(bench.cwd, join(bench.home, "link"));
    const outcome = await bench.call("bash", bash("pwd"), { cwd: join(bench.home, "link") });
    expect(textOf(outcome)).toBe(join(bench.home, "link"));
  });

  it("is an error with what came so far when cancelled, and nothing is left running [harness/B5]", async () => {
    const bench = await openBench();
    const abort = new AbortController();
    const command = "echo begun; sleep 1000 & echo $! >child; wait";
    const running = bench.call("bash", bash(command), { signal: abort.signal });
    const child = await pidFrom(bench, "child");
    abort.abort();
    const outcome = await running;
    expect(outcome.isError).toBe(true);
    expect(outcome.error).toEqual({ name: "ToolError", code: "ABORTED" });
    expect(textOf(outcome)).toMatch(
      /^Error: the command was cancelled.*\nbegun\n\[signal: SIGTERM\]$/,
    );
    expect(await isAlive(child)).toBe(false);
  });

  it("ends a command that ignores TERM, and a child that left the group, when cancelled [harness/B5]", async () => {
    const bench = await openBench();
    const abort = new AbortController();
    const command =
      "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >stray; while :; do sleep 0.1; done' & echo $$ >leader; while :; do sleep 0.1; done";
    const running = bench.call("bash", bash(command), { signal: abort.signal });
    const pids = [await pidFrom(bench, "leader"), await pidFrom(bench, "stray")];
    abort.abort();
    const outcome = await running;
    expect(outcome.error?.code).toBe("ABORTED");
    expect(outcome.meta?.["signal"]).toBe("SIGKILL");
    for (const pid of pids) expect(await isAlive(pid)).toBe(false);
  });

  it("never starts when the call was cancelled before", async () => {
    const bench = await openBench();
    const outcome = await bench.call("bash", bash("touch ran"), { signal: AbortSignal.abort() });
    expect(outcome.error?.code).toBe("ABORTED_BEFORE_DISPATCH");
    expect((await bench.call("bash", bash("ls"))).content[0]?.text).toBe("(no output)");
  });

  it("ignores env and stdin keys [harness/B12]", async () => {
    const bench = await openBench();
    const more = { env: { EVIL: "yes" }, stdin: "typed", run_in_background: false };
    const outcome = await bench.call("bash", bash('echo "[${EVIL-}]"; cat; echo end', more));
    expect(textOf(outcome)).toBe("[]\nend");
  });

  it("offers jobs of its kind, which its body does not start itself", async () => {
    const bench = await openBench();
    expect(bashTool.row).toMatchObject({
      jobKind: "bash",
      parameters: { properties: { run_in_background: { type: "boolean" } } },
    });
    const outcome = await bench.call("bash", bash("touch ran", { run_in_background: true }));
    expect(outcome).toMatchObject({ isError: true, error: { code: "JOBS_UNAVAILABLE" } });
    expect(textOf(outcome)).toContain("background jobs unavailable");
    expect(textOf(await bench.call("bash", bash("ls")))).toBe("(no output)");
  });

  it("has no credentials in its environment, and fresh facts", async () => {
    const secrets = [
      "MY_API_KEY",
      "GITHUB_TOKEN",
      "AWS_REGION",
      "DB_PASSWORD",
      "LONGHAUL_WORKER",
      "SSH_AUTH_SOCK",
    ];
    for (const name of secrets) vi.stubEnv(name, "hidden");
    vi.stubEnv("GIT_AUTHOR_NAME", "Ann");
    vi.stubEnv("PLAIN", "seen");
    const bench = await openBench();
    const outcome = await bench.call("bash", bash("env"), { claim: "7.1.x" });
    vi.unstubAllEnvs();
    const text = textOf(outcome);
    expect(text).not.toContain("hidden");
    expect(text).toContain("PLAIN=seen");
    expect(text).toContain("GIT_AUTHOR_NAME=Ann");
    const facts = text.split("\n").filter((line) => line.startsWith("LONGHAUL_"));
    expect(facts.toSorted()).toEqual([
      `LONGHAUL_CALL=7.1.x`,
      `LONGHAUL_HOME=${bench.home}`,
      "LONGHAUL_SESSION_ID=session-1",
    ]);
  });

  it("has no terminal and an empty stdin, and lets /dev/stdout and /dev/stderr be opened", async () => {
    const bench = await openBench();
    const command =
      "cat; tty; echo a >/dev/stdout; echo b >/dev/stderr; (: </dev/tty) 2>/dev/null && echo terminal";
    expect(textOf(await bench.call("bash", bash(command)))).toBe(
      "not a tty\na\n[stderr]\nb\n[exit code: 1]",
    );
  });

  it("replaces what is not UTF-8 or NUL in binary output", async () => {
    const bench = await openBench();
    const outcome = await bench.call(
      "bash",
      bash("printf 'a\\000b\\377\\376c\\303\\n\\343\\201\\202'"),
    );
    expect(textOf(outcome)).toBe("a\uFFFDb\uFFFD\uFFFDc\uFFFD\nあ");
    const random = await bench.call("bash", bash("head -c 300000 /dev/urandom"));
    expect(random.isError).toBe(false);
    expect(Buffer.byteLength(textOf(random))).toBeLessThanOrEqual(50_000);
  });

  it("runs from 60 s by default to 600 s at most", async () => {
    const description = JSON.stringify(bashTool.row.parameters);
    expect(description).toContain("default 60000, at most 600000");
    expect(bashTool.row).toMatchObject({ where: "host", parallel: false, idempotent: false });
    expect(bashTool.row.timeoutMs).toBeUndefined();
  });

  it("refuses a missing workspace, a missing workdir, and a command with NUL in one line", async () => {
    const bench = await openBench();
    const cases = [
      await bench.call("bash", bash("true"), { cwd: join(bench.home, "gone") }),
      await bench.call("bash", bash("true", { workdir: "gone" })),
      await bench.call("bash", bash("tr\0ue")),
    ];
    expect(cases.map((outcome) => outcome.error?.code)).toEqual([
      "WORKSPACE",
      "WORKSPACE",
      "INVALID_ARGS",
    ]);
    for (const outcome of cases) expect(textOf(outcome)).toMatch(/^Error: [^\n]+$/);
  });

  it("reports a command that is too long for the system as a spawn failure", async () => {
    const bench = await openBench();
    const outcome = await bench.call("bash", bash(`: ${"x".repeat(3_000_000)}`));
    expect(outcome.error?.code).toBe("SPAWN_FAILED");
    expect(textOf(outcome)).toContain("put it into a file");
  });
});
