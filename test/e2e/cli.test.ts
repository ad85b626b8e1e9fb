import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { LonghaulClient } from "../../src/client/index.js";
import { packageVersion } from "../../src/cli/package.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { SessionView } from "../../src/contracts/session.js";
import { serverStatus, stopServer } from "../../src/server/index.js";
import { findProcessesByCommand } from "../../src/server/process-identity.js";
import {
  cliPath,
  runCliProcess,
  startCli,
  startCliInTest,
  userEnvironment,
  type CliProcess,
  type CliResult,
} from "../support/cli-process.js";
import { startOnTerminal } from "../support/terminal-process.js";

/** One directory with the scenarios, a workspace, and the data directories of this file. */
let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "longhaul-cli-e2e-"));
  for (const [name, steps] of Object.entries(scenarios))
    writeFileSync(join(root, `${name}.yaml`), `name: ${name}\nturns:\n${steps}`);
  mkdirSync(join(root, "work"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const scenarios = {
  quick: "  - repeat: 100\n    steps: [{ text: 'Answer ${turn}.' }]\n",
  twice: `  - steps:
      - { text: First I look., calls: [{ tool: bash, args: { command: "date +%Z; pwd", description: Look } }] }
      - { text: Then I answer. }
`,
  bash: `  - steps:
      - text: A look around.
        calls:
          - { tool: bash, args: { command: "echo \\"zone $TZ\\"; echo two", description: Look around } }
          - { tool: shout, args: { text: hello } }
      - { text: Done. }
`,
  slow: "  - repeat: 9\n    steps: [{ firstDelayMs: 600000, text: late }]\n",
  refused:
    "  - steps: [{ failures: [{ code: AUTH, message: the key is wrong, status: 401 }], text: never }]\n",
  long: "  - steps: [{ text: Only half of what, finish: max-tokens }]\n",
  counting: `  - steps: [{ text: "${Array.from({ length: 60 }, (_, n) => `n${n}.`).join(" ")}", chunk: 6, delayMs: 120 }]\n`,
};
const shoutTool = `import { defineTool } from "longhaul/tools";
import * as z from "zod";
export default defineTool({
  name: "shout",
  description: "Shout.",
  parameters: z.object({ text: z.string() }),
  execute: async ({ text }: { text: string }) => ({ text: text.toUpperCase() }),
});
`;
const scenario = (name: keyof typeof scenarios) => join(root, `${name}.yaml`);
const scripted = (name: keyof typeof scenarios) => `scripted:${scenario(name)}`;

describe("start without a terminal", () => {
  let home: string;
  let env: Record<string, string>;
  beforeAll(() => {
    home = join(root, "own");
    env = userEnvironment({ LONGHAUL_HOME: home });
  });
  afterAll(() => stopServer({ home, force: true }));

  const idOf = ({ stdout }: Pick<CliResult, "stdout">) =>
    /^Session +(\S+)$/m.exec(stdout)?.[1] ?? "";

  test("plays, names the session and its page, exits 0 and leaves nothing running; two at once share the server, and their sessions are all there later", async () => {
    const first = await runCliProcess(["start"], { env });
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toContain("sunlight.md says how long sunlight travels");
    const id = idOf(first);
    expect(first.stdout).toMatch(
      new RegExp(`^Temporal +http://127\\.0\\.0\\.1:\\d+/namespaces/default/workflows/${id}$`, "m"),
    );
    expect(await serverStatus({ home })).toMatchObject({ running: false, users: [] });
    expect(await findProcessesByCommand(home)).toEqual([]);

    const held = join(root, "held.yaml");
    const command = JSON.stringify(`until [ -e ${join(root, "go")} ]; do sleep 0.1; done`);
    writeFileSync(
      held,
      `name: held\nturns:\n  - steps:\n      - { text: Waiting., calls: [{ tool: bash, args: { command: ${command}, description: Wait } }] }\n      - { text: At last. }\n`,
    );
    const slow = startCliInTest(["start", "--scenario", held], { env });
    await slow.shows("Waiting.");
    const quick = await runCliProcess(["start", "--scenario", scenario("quick")], { env });
    expect(quick).toMatchObject({ code: 0, stderr: "" });
    expect(quick.stdout).not.toContain("starting Temporal server");
    expect(await serverStatus({ home })).toMatchObject({ running: true });
    expect(slow.child.exitCode).toBeNull();
    writeFileSync(join(root, "go"), "");
    const slowly = await slow.ended;
    expect(slowly).toMatchObject({ code: 0, stderr: "" });
    expect(slowly.stdout).toContain("At last.");
    expect(await serverStatus({ home })).toMatchObject({ running: false });

    const listed = await runCliProcess(["sessions", "--json"], { env });
    const ids = (JSON.parse(listed.stdout) as { id: string }[]).map((one) => one.id);
    expect(ids.toSorted()).toEqual([id, idOf(quick), idOf(slowly)].toSorted());
    expect(await findProcessesByCommand(home)).toEqual([]);
  });
});

describe("start on a terminal", () => {
  test("shows the calls as cards, of a tool of one's own too, and stays for the other commands until Ctrl-C", async () => {
    const home = join(root, "tty");
    const env = userEnvironment({ LONGHAUL_HOME: home, TZ: "Asia/Shanghai" });
    const tools = join(root, "tools.ts");
    writeFileSync(tools, shoutTool);
    const args = ["start", "--scenario", scenario("bash"), "--tools", tools];
    const terminal = startOnTerminal(args, { env });
    try {
      await terminal.shows("It stays up until Ctrl-C");
      expect(terminal.screen.text()).toMatch(/^● bash {2}Look around {2}→ exit 0, 2 lines$/m);
      expect(terminal.screen.text()).toMatch(/^● shout .*→ HELLO$/m);
      const id = /^Session +(\S+)$/m.exec(terminal.screen.text())?.[1] ?? "";
      const other = await runCliProcess(["log", id, "--json"], { env });
      // Commands keep the zone of the user, though the worker is in UTC.
      expect(other.stdout).toContain("zone Asia/Shanghai");
      terminal.type("\u0003");
      expect(await terminal.ended).toBe(0);
      expect(terminal.screen.text()).toMatch(/stopping\nstopping the Temporal server/);
      expect(await findProcessesByCommand(home)).toEqual([]);
    } finally {
      await stopServer({ home, force: true });
    }
  });
});

describe("with a worker and a server that stay", () => {
  let home: string;
  let env: Record<string, string>;
  let worker: CliProcess;
  let client: LonghaulClient;

  beforeAll(async () => {
    home = join(root, "shared");
    env = userEnvironment({ LONGHAUL_HOME: home });
    worker = await startWorker();
    const { address = "" } = await serverStatus({ home });
    client = await LonghaulClient.connect({ connection: { address } });
  });
  afterAll(async () => {
    await client.close();
    worker.child.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ code: 0 });
    await stopServer({ home, force: true });
    expect(await findProcessesByCommand(home)).toEqual([]);
  });

  async function startWorker(): Promise<CliProcess> {
    const started = startCli(["worker"], { env });
    await started.shows("worker ready");
    return started;
  }

  const cli = (...args: string[]) => runCliProcess(args, { env, cwd: join(root, "work") });

  const ids = async () => (await client.list()).map((one) => one.id);

  /** The session that was not there before; lists lag behind a little. */
  async function fresh(before: readonly string[], state?: "running"): Promise<string> {
    const find = async () => {
      const found = await client.list(state === undefined ? {} : { state });
      return found.find((one) => !before.includes(one.id))?.id;
    };
    await vi.waitFor(async () => expect(await find()).toBeDefined(), { timeout: 20_000 });
    return (await find()) ?? "";
  }

  /** A `run` under way, and the id of its session once that is in this state. */
  async function running(name: keyof typeof scenarios): Promise<[CliProcess, string]> {
    const before = await ids();
    const task = startCliInTest(["run", "--model", scripted(name), "go"], { env });
    return [task, await fresh(before, "running")];
  }

  const jsonLines = (text: string) =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as LogEntry);

  const failed = (code: string) => ({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(new RegExp(`^error: ${code}: [^\\n]+\\n$`)),
  });

  describe("run", () => {
    test("[harness/E1] [harness/E5] prints the last text of the turn, in this directory and the user's zone, and exits 0", async () => {
      const before = await ids();
      const result = await cli("run", "--model", scripted("twice"), "look", "and", "answer");
      expect(result).toEqual({ code: 0, stdout: "Then I answer.\n", stderr: "" });
      const { stdout } = await cli("log", await fresh(before), "--json");
      expect(stdout).toContain(join(root, "work"));
    });

    test("[harness/E2] prints code and message of an error in one line and exits 1", async () => {
      expect(await cli("run", "--model", scripted("refused"), "go")).toEqual({
        code: 1,
        stdout: "",
        stderr: "error: AUTH: the key is wrong\n",
      });
    });

    test("[harness/E3] exits 1 at the token limit, with what was said", async () => {
      expect(await cli("run", "--model", scripted("long"), "go")).toEqual({
        code: 1,
        stdout: "Only half of what\n",
        stderr: "error: the turn stopped at the token limit\n",
      });
    });

    test("[harness/E3] exits 1 when the turn is interrupted from elsewhere", async () => {
      const [task, id] = await running("slow");
      expect(await cli("interrupt", id)).toMatchObject({ code: 0 });
      expect(await task.ended).toEqual({
        code: 1,
        stdout: "",
        stderr: "error: the turn was aborted\n",
      });
    });

    test("[harness/E6] a blank task is a usage error and starts nothing", async () => {
      const elsewhere = join(root, "never");
      const result = await runCliProcess(["run", "--model", scripted("quick"), "  "], {
        env: userEnvironment({ LONGHAUL_HOME: elsewhere }),
      });
      expect(result).toMatchObject({ code: 2, stdout: "" });
      expect(result.stderr).toMatch(/^error: USAGE: [^\n]+\n$/);
      expect(await serverStatus({ home: elsewhere })).toMatchObject({ running: false });
    });

    test("a scenario with a mistake is named with line and column", async () => {
      const path = join(root, "mistake.yaml");
      writeFileSync(path, "name: mistake\nturns:\n  - steps:\n      - { txt: hello }\n");
      const result = await cli("run", "--model", `scripted:${path}`, "go");
      expect(result.code).toBe(1);
      expect(result.stderr).toMatch(
        /^error: INVALID_SCENARIO: [^\n]*mistake\.yaml:4:11: [^\n]*txt[^\n]*\n$/,
      );
    });
  });

  describe("a session from outside", () => {
    let id: string;
    beforeAll(async () => {
      const before = await ids();
      const task = startCli(["run", "--model", scripted("quick"), "go"], { env });
      expect(await task.ended).toMatchObject({ code: 0 });
      id = await fresh(before);
    });

    test("its log is one JSON object a line, numbered without a gap; a reader that leaves ends it quietly", async () => {
      const { code, stdout, stderr } = await cli("log", id, "--json");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      const entries = jsonLines(stdout);
      expect(entries.map((entry) => entry.seq)).toEqual(entries.map((_, index) => index));
      expect(entries[0]?.type).toBe("session/open");
      expect(entries.at(-1)?.type).toBe("turn/end");

      const piped = spawn(
        "sh",
        ["-c", `"${process.execPath}" "${cliPath}" log ${id} --json --follow | head -n 1`],
        { env },
      );
      let [out, err] = ["", ""];
      piped.stdout.on("data", (data) => (out += data));
      piped.stderr.on("data", (data) => (err += data));
      const [line] = stdout.split("\n");
      // `log --follow` only notices a reader that left when it writes.
      await vi.waitFor(() => expect(out).toBe(`${line}\n`), { timeout: 20_000 });
      await cli("send", id, "more");
      await vi.waitFor(() => expect(piped.exitCode).toBe(0), { timeout: 20_000 });
      expect(err).toBe("");
    });

    test("a message is taken once: the same id gets the same verdict, other content under it is refused", async () => {
      const first = await cli("send", id, "a question", "--id", "ticket-1", "--json");
      expect(first).toMatchObject({ code: 0, stderr: "" });
      expect(await cli("send", id, "a question", "--id", "ticket-1", "--json")).toEqual(first);
      expect(await cli("send", id, "another", "--id", "ticket-1")).toEqual(failed("DUPLICATE_ID"));
      const { stdout } = await cli("log", id, "--json");
      const told = jsonLines(stdout).filter(
        (entry) => entry.type === "user/message" && entry.data.message.id === "ticket-1",
      );
      expect(told.length).toBeLessThanOrEqual(1);
    });

    test("a message of more than 256 KB and a session nobody knows are refused in one line", async () => {
      const large = await runCliProcess(["send", id, "-"], { env, stdin: "x".repeat(300_000) });
      expect(large).toEqual(failed("MESSAGE_TOO_LARGE"));
      for (const args of [
        ["show", "s-nobody"],
        ["send", "s-nobody", "hi"],
        ["log", "s-nobody"],
      ])
        expect(await cli(...args)).toEqual(failed("SESSION_NOT_FOUND"));
    });

    test("its todo list is written during a turn and only then", async () => {
      expect(await cli("todo", id, "set", "too late")).toEqual(failed("INVALID_INPUT"));
      const [busy, other] = await running("slow");
      const set = await cli("todo", other, "set", "[x] Look", "[>] Think", "Write");
      expect(set).toMatchObject({ code: 0, stderr: "" });
      const { todos } = JSON.parse((await cli("todo", other, "--json")).stdout) as SessionView;
      expect(todos).toEqual([
        { content: "Look", status: "completed" },
        { content: "Think", status: "in_progress" },
        { content: "Write", status: "pending" },
      ]);
      busy.child.kill("SIGINT");
      expect(await busy.ended).toMatchObject({ code: 130 });
    });

    test("it is followed until it is closed; then its log can be read and nothing sent", async () => {
      const following = startCliInTest(["log", id, "--follow", "--json"], { env });
      await following.shows("session/open");
      expect(await cli("close", id, "--reason", "enough")).toMatchObject({ code: 0, stderr: "" });
      const followed = await following.ended;
      expect(followed).toMatchObject({ code: 0, stderr: "" });
      const entries = jsonLines(followed.stdout);
      expect(entries.at(-1)).toMatchObject({ type: "session/close", data: { reason: "enough" } });
      expect(entries.map((entry) => entry.seq)).toEqual(entries.map((_, index) => index));
      expect((await cli("log", id, "--json")).stdout).toBe(followed.stdout);
      expect(await cli("send", id, "still there?")).toEqual(failed("SESSION_CLOSED"));
    });
  });

  test("a follower sees one whole answer though the worker is killed in the middle of it", async () => {
    const [task, id] = await running("counting");
    const following = startCliInTest(["log", id, "--follow"], { env });
    await following.shows("n5.");
    worker.child.kill("SIGKILL");
    await worker.ended;
    worker = await startWorker();
    const whole = Array.from({ length: 60 }, (_, n) => `n${n}.`).join(" ");
    expect(await task.ended).toEqual({ code: 0, stdout: `${whole}\n`, stderr: "" });
    await following.shows("n59.");
    // The follower is told in between that nothing comes; the text goes on at the same character.
    const told = following.stdout().replaceAll(/\n+waiting: .*\n+it goes on\n+/g, "");
    const numbers = [...told.matchAll(/n(\d+)\./g)].map((match) => Number(match[1]));
    expect(numbers).toEqual(Array.from({ length: 60 }, (_, n) => n));
    await cli("close", id);
    expect(await following.ended).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("run with a model over HTTP", () => {
  test("a worker of its own calls the provider that the environment and config.yaml name", async () => {
    const asked: { readonly key: string | undefined; readonly body: string }[] = [];
    const provider = createServer((request, response) => {
      let body = "";
      request.on("data", (piece) => (body += piece));
      request.on("end", () => {
        asked.push({ key: request.headers.authorization, body });
        response.writeHead(200, { "content-type": "text/event-stream" });
        const choices = [
          { index: 0, delta: { role: "assistant", content: "Hello " } },
          { index: 0, delta: { content: "over HTTP." } },
          { index: 0, delta: {}, finish_reason: "stop" },
        ];
        for (const choice of choices)
          response.write(
            `data: ${JSON.stringify({ id: "1", model: "toy", choices: [choice] })}\n\n`,
          );
        response.end("data: [DONE]\n\n");
      });
    });
    const own = join(root, "http");
    try {
      const port = await new Promise<number>((resolve) =>
        provider.listen(0, "127.0.0.1", () => resolve((provider.address() as AddressInfo).port)),
      );
      mkdirSync(own);
      writeFileSync(
        join(own, "config.yaml"),
        `allowParallelInProgress: true\nmodel: openai-compatible/toy\nproviders: { openai-compatible: { baseUrl: "http://127.0.0.1:${port}/v1" } }\nmodels: { openai-compatible/toy: { maxTokens: 77 } }\n`,
      );
      const env = userEnvironment({ LONGHAUL_HOME: own, LONGHAUL_API_KEY: "a-key-of-no-use" });
      expect(await runCliProcess(["run", "say hello"], { env })).toEqual({
        code: 0,
        stdout: "Hello over HTTP.\n",
        stderr: "",
      });
      expect(asked).toHaveLength(1);
      expect(asked[0]?.key).toBe("Bearer a-key-of-no-use");
      expect(JSON.parse(asked[0]?.body ?? "")).toMatchObject({ model: "toy", max_tokens: 77 });
    } finally {
      await stopServer({ home: own, force: true });
      await new Promise((resolve) => provider.close(resolve));
    }
  });
});

describe("without a server of its own", () => {
  test("an address where nobody answers and a namespace that is not there are one line and exit 1", async () => {
    const cluster = join(root, "cluster");
    const env = userEnvironment({ LONGHAUL_HOME: cluster });
    const unreachable = { ...env, TEMPORAL_ADDRESS: "127.0.0.1:1" };
    const nobody = await runCliProcess(["sessions"], { env: unreachable });
    expect(nobody).toMatchObject({ code: 1, stdout: "" });
    expect(nobody.stderr).toMatch(/^error: TEMPORAL_UNREACHABLE: [^\n]*127\.0\.0\.1:1[^\n]*\n$/);
    try {
      const started = await runCliProcess(["server", "start", "--json"], { env });
      const { address } = JSON.parse(started.stdout) as { address: string };
      const elsewhere = { ...env, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: "elsewhere" };
      const wrong = await runCliProcess(["sessions"], { env: elsewhere });
      expect(wrong).toMatchObject({ code: 1, stdout: "" });
      expect(wrong.stderr).toMatch(/^error: NAMESPACE_NOT_FOUND: [^\n]*elsewhere[^\n]*\n$/);
    } finally {
      await stopServer({ home: cluster, force: true });
    }
  });

  test("the version is printed from any directory", async () => {
    const env = userEnvironment({ LONGHAUL_HOME: join(root, "none") });
    expect(await runCliProcess(["--version"], { env, cwd: tmpdir() })).toEqual({
      code: 0,
      stdout: `${packageVersion}\n`,
      stderr: "",
    });
  });
});
