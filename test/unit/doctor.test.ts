import { describe, expect, it } from "vitest";
import { checkLines } from "../../src/cli/doctor/lines.js";
import {
  diskCheck,
  nodeCheck,
  permissionCheck,
  timeZoneCheck,
} from "../../src/cli/doctor/machine.js";
import { callCheck, modelCheck } from "../../src/cli/doctor/model.js";
import {
  attributeCheck,
  clockCheck,
  clockFacts,
  livePollers,
  serverCheck,
  workerCheck,
} from "../../src/cli/doctor/temporal.js";

const now = Date.UTC(2026, 5, 1);

describe("the machine", () => {
  it("wants Node 20.19", () => {
    const status = (node: string) => nodeCheck({ node, now }).status;
    expect(["20.19.0", "22.0.0", "24.1.0"].map(status)).toEqual(["ok", "ok", "ok"]);
    expect(["18.20.4", "20.18.3"].map(status)).toEqual(["fail", "fail"]);
  });

  it("tells the edition of the time-zone data, and warns of one two years old or of none", () => {
    const check = (tz: string | undefined) =>
      timeZoneCheck({ node: "22.0.0", icu: "78.2", tz, now });
    expect(check("2025c")).toEqual({
      name: "Time zones",
      status: "ok",
      found: "tz data 2025c, ICU 78.2",
    });
    expect(check("2024b")).toMatchObject({
      status: "warn",
      found: expect.stringContaining("2024b"),
    });
    expect(check(undefined).status).toBe("warn");
  });

  it("warns of a data directory that others own, write or look into", () => {
    const home = (mode: number, uid = 7) => ({ path: "/home", mode: 0o40000 | mode, uid });
    const store = (mode: number) => ({ path: "/home/store", mode: 0o40000 | mode, uid: 7 });
    const check = (...facts: Parameters<typeof permissionCheck>) => permissionCheck(...facts);
    expect(check(home(0o755), [store(0o700)], 7).status).toBe("ok");
    // Nobody gets to what lies in a closed directory.
    expect(check(home(0o700), [store(0o755)], 7).status).toBe("ok");
    expect(check(home(0o755), [store(0o750)], 7)).toMatchObject({
      status: "warn",
      cure: "chmod 700 /home/store",
    });
    expect(check(home(0o775), [], 7)).toMatchObject({ status: "warn", cure: "chmod go-w /home" });
    expect(check(home(0o700, 0), [], 7)).toMatchObject({
      status: "warn",
      found: "/home belongs to user 0, this is user 7",
    });
    expect(check(home(0o777, 0), [], undefined).status).toBe("ok");
  });

  it("warns below 1 GB of free disk and fails below 100 MB", () => {
    const status = (free: number) => diskCheck("/", free).status;
    expect([1e9, 999e6, 100e6, 99e6].map(status)).toEqual(["ok", "warn", "warn", "fail"]);
  });
});

describe("the model", () => {
  const settings = (model?: { provider: string; model: string }) => ({
    configFile: "/home/config.yaml",
    file: { allowParallelInProgress: false, request: {}, limits: {} },
    ...(model === undefined ? {} : { model }),
  });
  const known = { provider: "deepseek", model: "deepseek-chat" };

  it("none configured is a warning; a missing key, an unknown provider and an unreadable scenario fail; a new model is a warning", async () => {
    const check = (model?: typeof known, env = {}) => modelCheck({ env }, settings(model));
    const key = { DEEPSEEK_API_KEY: "k-secret" };
    expect(await check()).toMatchObject({ status: "warn" });
    const fine = await check(known, key);
    expect(fine).toMatchObject({ status: "ok" });
    expect(JSON.stringify(fine)).not.toContain("k-secret");
    expect(await check(known)).toMatchObject({
      status: "fail",
      found: expect.stringContaining("DEEPSEEK_API_KEY"),
    });
    expect((await check({ provider: "deepsek", model: "x" })).status).toBe("fail");
    expect((await check({ provider: "deepseek", model: "brand-new" }, key)).status).toBe("warn");
    expect(await check({ provider: "scripted", model: "/not/there.yaml" })).toMatchObject({
      status: "fail",
      found: expect.stringContaining("/not/there.yaml"),
    });
  });

  it("a call tells its latency, or the code of its failure", () => {
    const reply = { kind: "reply", content: [], finish: "stop" } as const;
    expect(callCheck(known, { outcome: reply, firstMs: 12.4, totalMs: 80 })).toEqual({
      name: "Model call",
      status: "ok",
      found: "deepseek/deepseek-chat answered: first token after 12 ms, 80 ms in all",
    });
    const failure = { code: "AUTH", message: "the key is wrong" } as const;
    expect(callCheck(known, { outcome: { kind: "failure", failure }, totalMs: 1 })).toMatchObject({
      status: "fail",
      found: "deepseek/deepseek-chat: AUTH: the key is wrong",
      cure: expect.stringContaining("AUTH"),
    });
    const cut = { kind: "cancelled", content: [] } as const;
    expect(callCheck(known, { outcome: cut, totalMs: 60_000 })).toMatchObject({
      status: "fail",
      found: expect.stringContaining("no answer within 60 s"),
    });
  });
});

describe("Temporal", () => {
  it("tells which server was found and by whom, or how one is started, or the cure its error names", () => {
    const at = { address: "h:7233", namespace: "default", version: "server 1.32.0" };
    expect(serverCheck({ kind: "cluster", from: "TEMPORAL_ADDRESS", ...at })).toMatchObject({
      status: "ok",
      found: "server 1.32.0 at h:7233, namespace default, named by TEMPORAL_ADDRESS",
    });
    const binary = {
      path: "/bin/temporal",
      version: "1.9.1",
      tried: ["LONGHAUL_TEMPORAL_CLI: x is not there"],
    };
    expect(serverCheck({ kind: "stopped", died: false, log: "/l", binary })).toMatchObject({
      status: "warn",
      found:
        "not running; CLI 1.9.1 is at /bin/temporal; passed over: LONGHAUL_TEMPORAL_CLI: x is not there",
      cure: expect.stringContaining("longhaul server start"),
    });
    expect(serverCheck({ kind: "stopped", died: true, log: "/l", binary }).found).toContain("/l");
    const message =
      "Found no Temporal server to run. Tried: 1. PATH: no; 2. cache: no. Set TEMPORAL_ADDRESS to one.";
    expect(serverCheck({ kind: "no binary", message })).toMatchObject({
      status: "fail",
      found: "Found no Temporal server to run. Tried: 1. PATH: no; 2. cache: no",
      cure: "Set TEMPORAL_ADDRESS to one.",
    });
    const refused =
      "no Temporal server answered at h:1 (connect ECONNREFUSED 127.0.0.1:1); start it";
    expect(serverCheck({ kind: "unusable", message: refused })).toMatchObject({
      status: "fail",
      found: "no Temporal server answered at h:1 (connect ECONNREFUSED 127.0.0.1:1)",
      cure: "start it",
    });
    expect(serverCheck({ kind: "unusable", message: "boom" }).cure).toContain("server status");
  });

  it("names search attributes that are missing, of another type, or not to be read", () => {
    const check = (present: string[], usable: string[], refused?: string) =>
      attributeCheck(["A", "B"], {
        address: "h:7233",
        namespace: "n",
        present: new Set(present),
        usable: new Set(usable),
        ...(refused === undefined ? {} : { refused }),
      });
    expect(check(["A", "B"], ["A", "B"]).status).toBe("ok");
    expect(check(["A"], ["A"])).toMatchObject({
      status: "warn",
      found: 'B not registered in "n"',
      cure: expect.stringContaining("create --address h:7233 -n n --name B --type Keyword"),
    });
    const { cure } = attributeCheck(["LonghaulOpenJobs"], {
      address: "h:7233",
      namespace: "n",
      present: new Set(),
      usable: new Set(),
    });
    expect(cure).toContain("--name LonghaulOpenJobs --type Int");
    expect(check(["A", "B"], ["B"])).toMatchObject({
      status: "warn",
      found: 'A in "n" is not of type Keyword',
    });
    expect(check([], [], "denied")).toMatchObject({
      status: "warn",
      found: expect.stringContaining("denied"),
    });
  });

  it("a worker counts when each of its queues was polled within the last poll's length", () => {
    const poller = (age: number) => ({ identity: "1@h", age });
    expect(livePollers([poller(74_000), poller(76_000), poller(-500)])).toEqual([
      poller(74_000),
      poller(-500),
    ]);
    const what = { name: "Host worker", role: "host" };
    expect(
      workerCheck(what, { q: [poller(9_000), poller(2_400)], r: [poller(-500)] }),
    ).toMatchObject({
      status: "ok",
      found: "q by 1@h (2 s ago); r by 1@h (0 s ago)",
    });
    expect(workerCheck(what, { q: [poller(1)], r: [] })).toMatchObject({
      status: "warn",
      found: "nobody polls r",
      cure: expect.stringContaining("longhaul worker --role host"),
    });
  });

  it("warns of a clock that is more than 2 s off beyond what the request's own time can explain", () => {
    const skewed = (by: number, took: number) =>
      clockCheck(clockFacts(1_000_000, 1_000_000 + took / 2 + by, 1_000_000 + took));
    expect(skewed(0, 10).status).toBe("ok");
    expect(skewed(1_900, 0).status).toBe("ok");
    expect(skewed(2_100, 1_000).status).toBe("ok");
    expect(skewed(2_600, 1_000)).toMatchObject({
      status: "warn",
      found: "2.6 s behind the server's (± 0.5 s)",
    });
    expect(skewed(-9_000, 0)).toMatchObject({
      status: "warn",
      found: expect.stringContaining("9.0 s ahead of"),
    });
  });
});

it("prints status, name and finding in columns, and the whole cure below, without control sequences of others", () => {
  const terminal = { color: false, unicode: true, columns: 20, live: false };
  const text = checkLines(
    [
      { name: "Disk", status: "ok", found: "9 GB" },
      {
        name: "A model",
        status: "fail",
        found: "no \u001b[31mkey\nhere",
        cure: "set the key where the worker runs",
      },
    ],
    terminal,
  );
  expect(text).toBe(
    "ok    Disk     9 GB\nfail  A model  no key here\n               → set the key where the worker runs\n",
  );
});
