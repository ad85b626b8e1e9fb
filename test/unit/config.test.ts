import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { homeOf, modelName, parseModel, readSettings, sessionConfig } from "../../src/config.js";
import { defaultLimits } from "../../src/contracts/config.js";
import { LonghaulError } from "../../src/contracts/errors.js";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "longhaul-config-"));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

const file = () => join(dir, "config.yaml");
const read = (env: Record<string, string> = {}, flags: Parameters<typeof readSettings>[1] = {}) =>
  readSettings(env, { home: dir, ...flags }, "/base");
const readWith = (text: string) => {
  writeFileSync(file(), text);
  return read();
};

function codeAndMessage(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof LonghaulError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return "nothing was thrown";
}

describe("the first use of a data directory", () => {
  it("writes config.yaml with the choice that has no default, explained", () => {
    const settings = read();
    expect(settings.file.allowParallelInProgress).toBe(true);
    const text = readFileSync(file(), "utf8");
    expect(text).toMatch(/^# .*several todo items.*\n(?:#.*\n)*allowParallelInProgress: true$/m);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  it("makes the directory, also a nested one", () => {
    expect(readSettings({}, { home: join(dir, "a/b") }, "/").home).toBe(join(dir, "a/b"));
    expect(statSync(join(dir, "a/b/config.yaml")).isFile()).toBe(true);
  });

  it("makes the host id once and keeps it", () => {
    const first = read().hostId;
    expect(first).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{6}$/);
    expect(read().hostId).toBe(first);
    expect(readFileSync(join(dir, "host-id"), "utf8")).toBe(`${first}\n`);
  });

  it("leaves a file that is there as it is", () => {
    readWith("allowParallelInProgress: false\n");
    expect(read().file.allowParallelInProgress).toBe(false);
    expect(readFileSync(file(), "utf8")).toBe("allowParallelInProgress: false\n");
  });
});

describe("where a setting comes from", () => {
  it("is the flag, then the environment, then the file", () => {
    writeFileSync(file(), "allowParallelInProgress: true\nmodel: from/file\n");
    const env = { LONGHAUL_MODEL: "from/env", LONGHAUL_HOST_ID: "env-host" };
    expect(read().model).toEqual({ provider: "from", model: "file" });
    expect(read(env).model).toEqual({ provider: "from", model: "env" });
    expect(read(env, { model: "from/flag" }).model).toEqual({ provider: "from", model: "flag" });
    expect(read(env).hostId).toBe("env-host");
    expect(read(env, { hostId: "flag-host" }).hostId).toBe("flag-host");
  });

  it("counts an empty variable as not set", () => {
    expect(read({ LONGHAUL_MODEL: " ", LONGHAUL_HOST_ID: "" }).model).toBeUndefined();
  });

  it("is ~/.longhaul for the data directory when nothing says otherwise; relative ones start at the working directory", () => {
    expect(homeOf({}, {}, "/base")).toBe(join(homedir(), ".longhaul"));
    expect(homeOf({ LONGHAUL_HOME: "env" }, {}, "/base")).toBe("/base/env");
    expect(homeOf({ LONGHAUL_HOME: "env" }, { home: "flag" }, "/base")).toBe("/base/flag");
  });
});

describe("a model's name", () => {
  it.each([
    ["openai/gpt-x", { provider: "openai", model: "gpt-x" }],
    ["router/maker/model:free", { provider: "router", model: "maker/model:free" }],
    ["scripted:play.yaml", { provider: "scripted", model: "/base/play.yaml" }],
    ["scripted:/a b/play.yaml", { provider: "scripted", model: "/a b/play.yaml" }],
  ])("%s is read as provider and model", (text, route) => {
    expect(parseModel(text, "--model", "/base")).toEqual(route);
    expect(parseModel(modelName(route), "--model", "/elsewhere")).toEqual(route);
  });

  it.each(["gpt", "/gpt", "openai/", "open ai/gpt", "openai/g pt", "scripted:"])(
    "%j is refused, naming where it came from",
    (text) => {
      expect(codeAndMessage(() => parseModel(text, "LONGHAUL_MODEL", "/base"))).toBe(
        `INVALID_CONFIG: LONGHAUL_MODEL expected provider/model or scripted:<file>, got ${JSON.stringify(text)}`,
      );
      expect(codeAndMessage(() => parseModel(text, "--model", "/base"))).toMatch(
        /^USAGE: --model expected/,
      );
    },
  );

  it("of the file is relative to the file", () => {
    expect(
      readWith("allowParallelInProgress: true\nmodel: scripted:plays/one.yaml\n").model?.model,
    ).toBe(join(dir, "plays/one.yaml"));
  });
});

describe("a mistake in config.yaml", () => {
  it("[todo/25] of the todo policy has exactly its load error, with the file", () => {
    expect(codeAndMessage(() => readWith("model: a/b\n"))).toBe(
      `INVALID_CONFIG: ${file()}: $.allowParallelInProgress missing required value`,
    );
    expect(codeAndMessage(() => readWith(""))).toBe(
      `INVALID_CONFIG: ${file()}: $.allowParallelInProgress missing required value`,
    );
    expect(codeAndMessage(() => readWith('model: a/b\nallowParallelInProgress: "no"\n'))).toBe(
      `INVALID_CONFIG: ${file()}:2:1: $.allowParallelInProgress expected boolean`,
    );
  });

  const policy = "allowParallelInProgress: true\n";

  it.each([
    ["YAML", `${policy}model: [a\n`, /config\.yaml:\d+:\d+: \S/],
    ["a key twice", `${policy}${policy}`, /config\.yaml:2:1: .*unique/],
    ["no map", "- a\n", /config\.yaml: \$ expected a map of settings/],
    [
      "an unknown key",
      `${policy}modle: a/b\n`,
      /config\.yaml:2:1: \$\.modle is not a setting; known here: .*model,/,
    ],
    [
      "an unknown limit",
      `${policy}limits:\n  retries: 3\n`,
      /config\.yaml:3:3: \$\.limits\.retries is not a setting; known here: .*maxModelRetries/,
    ],
    [
      "a wrong type",
      `${policy}limits:\n  maxModelRetries: many\n`,
      /config\.yaml:3:3: \$\.limits\.maxModelRetries expected (int|number)/,
    ],
    [
      "a number out of range",
      `${policy}limits:\n  maxParallelToolCalls: 0\n`,
      /config\.yaml:3:3: \$\.limits\.maxParallelToolCalls expected at least 1/,
    ],
    [
      "an item of a list",
      `${policy}deny:\n  - bash\n  - 7\n`,
      /config\.yaml:4:5: \$\.deny\[1\] expected string/,
    ],
    [
      "a provider",
      `${policy}providers:\n  deepseek: { url: https://x }\n`,
      /config\.yaml:3:15: \$\.providers\.deepseek\.url is not a setting; known here: baseUrl,/,
    ],
    [
      "what is known of a model",
      `${policy}models:\n  p/m: { contextWindow: 0 }\n`,
      /config\.yaml:3:10: \$\.models\.p\/m\.contextWindow expected at least 1/,
    ],
    [
      "an unknown limit of jobs",
      `${policy}jobs:\n  maxJobs: 3\n`,
      /config\.yaml:3:3: \$\.jobs\.maxJobs is not a setting; known here: maxConcurrentJobsPerOwner,/,
    ],
    [
      "a limit of jobs",
      `${policy}jobs:\n  heartbeatMs: 5\n`,
      /config\.yaml:3:3: \$\.jobs\.heartbeatMs expected a whole number of at least 100$/,
    ],
    [
      "limits of jobs that do not go together",
      `${policy}jobs: { waitTimeoutMs: 10, maxWaitTimeoutMs: 5 }\n`,
      /config\.yaml:2:9: \$\.jobs\.waitTimeoutMs exceeds maxWaitTimeoutMs \(5\)$/,
    ],
    [
      "a share of the window for compaction",
      `${policy}compaction: { thresholdRatio: 2 }\n`,
      /config\.yaml:2:\d+: \$\.compaction.*`thresholdRatio` is a number above 0, at most 1$/,
    ],
    [
      "a limit of reminders",
      `${policy}schedule:\n  maxActive: 0\n`,
      /config\.yaml:3:3: \$\.schedule\.maxActive expected a whole number from 1 to 1000, got 0$/,
    ],
    [
      "an unknown limit of reminders",
      `${policy}schedule:\n  max: 3\n`,
      /config\.yaml:3:3: \$\.schedule\.max is not a setting; known here: maxActive, maxPromptBytes$/,
    ],
    [
      "reminders that are neither on nor off",
      `${policy}schedule: "on"\n`,
      /config\.yaml:2:1: \$\.schedule expected true, false or an object, got string$/,
    ],
    [
      "the time for the model",
      `${policy}timeContext: { refreshIntervalMs: 1.5 }\n`,
      /config\.yaml:2:1: \$\.timeContext .*refreshIntervalMs/,
    ],
    ["jobs that are no map", `${policy}jobs:\n`, /config\.yaml:2:1: \$\.jobs expected an object$/],
    ["the model", `${policy}model: gpt\n`, /config\.yaml: \$\.model expected provider\/model/],
  ])("in %s is one line with its place", (_what, text, expected) => {
    const message = codeAndMessage(() => readWith(text));
    expect(message).toMatch(expected);
    expect(message).toMatch(/^INVALID_CONFIG: [^\n]+$/);
  });

  it("is also a file that cannot be read", () => {
    mkdirSync(file());
    expect(codeAndMessage(() => read())).toMatch(
      /^INVALID_CONFIG: .*config\.yaml expected a readable file .* got EISDIR/,
    );
  });

  it.runIf(process.platform === "linux")(
    "says at once that the data directory cannot be created, also where the system says ENOENT",
    () => {
      expect(codeAndMessage(() => readSettings({}, { home: "/proc/nope/deeper" }, "/"))).toMatch(
        /^INVALID_CONFIG: the data directory \/proc\/nope\/deeper cannot be created \(ENOENT: [^\n]+\); choose another --home$/u,
      );
    },
  );

  it("is also a data directory that is none", () => {
    writeFileSync(join(dir, "file"), "");
    expect(codeAndMessage(() => readSettings({}, { home: join(dir, "file") }, "/"))).toMatch(
      /^INVALID_CONFIG: .*config\.yaml expected .* got ENOTDIR/,
    );
  });

  it("is a host id no queue can be named after", () => {
    expect(codeAndMessage(() => read({ LONGHAUL_HOST_ID: "a b" }))).toMatch(
      /^INVALID_CONFIG: LONGHAUL_HOST_ID expected 1 to 63 letters/,
    );
    expect(codeAndMessage(() => read({}, { hostId: "" }))).toMatch(/^USAGE: --host-id expected/);
    writeFileSync(join(dir, "host-id"), "\n");
    expect(codeAndMessage(() => read())).toContain(join(dir, "host-id"));
  });
});

describe("a session's configuration", () => {
  it("is complete without any choice but the required one", () => {
    const settings = read();
    expect(sessionConfig(settings, { model: { provider: "p", model: "m" }, cwd: "/ws" })).toEqual({
      request: { provider: "p", model: "m" },
      allowParallelInProgress: true,
      worldTools: true,
      cwd: "/ws",
      outsideWorkspace: false,
      deny: [],
      ask: [],
      limits: defaultLimits,
    });
  });

  it("takes every choice of the file", () => {
    const settings = readWith(`allowParallelInProgress: false
model: p/m
reasoningEffort: high
temperature: 0.5
maxTokens: 1000
stop: [END]
system: Be brief.
outsideWorkspace: true
deny: [write]
ask: [bash]
limits: { maxModelRetries: 0, maxParallelToolCalls: 2 }
jobs: { completionDelivery: quiet, maxConcurrentJobsPerOwner: 3 }
schedule: { maxActive: 5 }
timeContext: true
compaction: { thresholdRatio: 0.7, prune: false }
`);
    expect(sessionConfig(settings, { model: { provider: "p", model: "m" } })).toEqual({
      request: {
        provider: "p",
        model: "m",
        reasoningEffort: "high",
        temperature: 0.5,
        maxTokens: 1000,
        stop: ["END"],
      },
      system: "Be brief.",
      allowParallelInProgress: false,
      worldTools: false,
      outsideWorkspace: true,
      deny: ["write"],
      ask: ["bash"],
      limits: { ...defaultLimits, maxModelRetries: 0, maxParallelToolCalls: 2 },
      jobs: { completionDelivery: "quiet", maxConcurrentJobsPerOwner: 3 },
      schedule: { maxActive: 5 },
      timeContext: true,
      compaction: { thresholdRatio: 0.7, prune: false },
    });
  });

  it.each([
    ["true", true],
    ["false", false],
    ["[docs.example.com, '*.example.org']", ["docs.example.com", "*.example.org"]],
  ])("says whether and where models may read the web: %s", (written, meant) => {
    const settings = readWith(`allowParallelInProgress: true\nwebFetch: ${written}\n`);
    expect(settings.file.webFetch).toEqual(meant);
  });

  it("refuses another word on the web with its place", () => {
    expect(() => readWith("allowParallelInProgress: true\nwebFetch: sometimes\n")).toThrow(
      /config\.yaml:2:1: \$\.webFetch expected true, false or a list of hosts/,
    );
  });

  it("leaves providers and models to the worker", () => {
    const { file: choices } = readWith(`allowParallelInProgress: true
providers: { deepseek: { baseUrl: "https://proxy.example.org", idleMs: 5000 } }
models: { deepseek/new: { contextWindow: 1000, maxTokens: 10, reasoningEffort: low } }
`);
    expect(choices.providers).toEqual({
      deepseek: { baseUrl: "https://proxy.example.org", idleMs: 5000 },
    });
    expect(choices.models).toEqual({
      "deepseek/new": { contextWindow: 1000, maxTokens: 10, reasoningEffort: "low" },
    });
  });
});
