import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stopServer } from "../../src/server/index.js";
import { findProcessesByCommand } from "../../src/server/process-identity.js";
import {
  startCli,
  startCliInTest,
  userEnvironment,
  type CliProcess,
} from "../support/cli-process.js";
import { startOnTerminal, type TerminalProcess } from "../support/terminal-process.js";

const words = Array.from({ length: 60 }, (_, n) => `w${n}`);
const scenarios = {
  counting: `  - repeat: 50\n    steps: [{ text: "Turn \${turn}: ${words.join(" ")} end.", chunk: 6, delayMs: 150 }]\n`,
  working: `  - repeat: 50
    steps:
      - text: I look around.
        calls:
          - { tool: bash, args: { command: "echo first; echo 日本", description: Look around } }
          - { tool: todo_write, args: { todos: [{ content: Look around, status: in_progress }] } }
      - { text: "Round \${turn} is done." }
`,
  held: `  - repeat: 50
    steps:
      - text: I wait.
        calls: [{ tool: bash, args: { command: "until [ -e go\${turn} ]; do sleep 0.05; done", description: Wait } }]
      - { text: "Waited in turn \${turn}." }
`,
};

let root: string;
let home: string;
let env: Record<string, string>;
let worker: CliProcess;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "longhaul-chat-"));
  home = join(root, "home");
  mkdirSync(join(root, "work"));
  for (const [name, steps] of Object.entries(scenarios))
    writeFileSync(join(root, `${name}.yaml`), `name: ${name}\nturns:\n${steps}`);
  env = userEnvironment({ LONGHAUL_HOME: home });
  worker = await startWorker();
});

afterAll(async () => {
  worker.child.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0 });
  await stopServer({ home, force: true });
  expect(await findProcessesByCommand(home)).toEqual([]);
  rmSync(root, { recursive: true, force: true });
});

async function startWorker(): Promise<CliProcess> {
  const started = startCli(["worker"], { env });
  await started.shows("worker ready");
  return started;
}

async function openChat(
  args: readonly string[],
  more: Record<string, string> = {},
): Promise<TerminalProcess> {
  const terminal = startOnTerminal(["chat", ...args], {
    env: { ...env, ...more },
    cwd: join(root, "work"),
    rows: 24,
  });
  await terminal.shows(/^(?:❯|>)$/m);
  return terminal;
}

const model = (name: keyof typeof scenarios) => [
  "--model",
  `scripted:${join(root, `${name}.yaml`)}`,
];
const idOn = ({ screen }: TerminalProcess) => /^Session +(\S+)$/m.exec(screen.text())?.[1] ?? "";
/** The text of a terminal as one line: where rows break does not matter. */
const flat = ({ screen }: TerminalProcess) => screen.text().replaceAll(/\s+/g, " ");
const count = (text: string, part: string) => text.split(part).length - 1;
const ctrlC = "\u0003";

describe("a chat on a terminal", () => {
  test("streams the answer once though the worker is killed in the middle of it and started again", async () => {
    const terminal = await openChat(model("counting"));
    terminal.type("count\r");
    await terminal.shows("w9 ");
    worker.child.kill("SIGKILL");
    await worker.ended;
    await terminal.shows(/^waiting: /m);
    worker = await startWorker();
    await terminal.shows("end.");
    const answer = `Turn 1: ${words.join(" ")} end.`;
    await expect.poll(() => flat(terminal)).toMatch(new RegExp(`> count ${answer} ❯$`));
    expect(count(flat(terminal), "w0 ")).toBe(1);
    terminal.type("/quit\r");
    expect(await terminal.ended).toBe(0);
  });

  test("shows calls as cards that open, and the todo list; a message waits in sight, and a queued one gets its own turn", async () => {
    const terminal = await openChat(model("working"));
    terminal.type("first\u001b\rsecond line\r");
    await terminal.shows("Round 1 is done.");
    expect(terminal.screen.text()).toMatch(/^> first\n> second line\n\nI look around\.\n/m);
    expect(terminal.screen.text()).toMatch(
      /^● bash {2}Look around {2}→ exit 0, 2 lines {2}\[1\]$/m,
    );
    expect(terminal.screen.text()).toMatch(/^ {2}▸ Look around$/m);
    terminal.type("/open 1\r");
    await terminal.shows("  | 日本");
    expect(terminal.screen.text()).toContain("  command: echo first; echo 日本");
    terminal.type("/open 7\r/nonsense\r");
    await terminal.shows("there is no call 7 to open: calls are numbered 1 to 1");
    await terminal.shows("unknown command /nonsense");
    // Bracketed paste: newlines stay in the message.
    terminal.type("\u001b[200~pasted one\npasted two\u001b[201~\r");
    await terminal.shows(/^> pasted one\n> pasted two$/m);
    await terminal.shows(/Round 2 is done\.\n\n❯$/);
    // Up brings back what was sent, also in the next chat.
    terminal.type("\u001b[A");
    await terminal.shows(/^❯ pasted one\n {2}pasted two$/m);
    terminal.type(ctrlC);
    await terminal.shows(/^❯$/m);
    terminal.type("\u0004");
    expect(await terminal.ended).toBe(0);
    expect(statSync(join(home, "chat-history")).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(home, "chat-history"), "utf8")).toContain('"pasted one\\npasted two"');
    // The cursor is shown, and nothing else of the terminal is left changed.
    expect([...terminal.screen.modes]).toEqual(["25"]);
  });

  test("Ctrl-C interrupts the turn and a second one leaves; coming back shows what happened meanwhile", async () => {
    const terminal = await openChat(model("held"));
    const id = idOn(terminal);
    terminal.type("go\r");
    await terminal.shows("○ bash  Wait");
    terminal.type("joins this turn\r/queue has its own turn\r");
    await terminal.shows(/^next step {2}joins this turn\nnext turn {2}has its own turn$/m);
    writeFileSync(join(root, "work", "go1"), "");
    await terminal.shows("Waited in turn 1.");
    const inOrder =
      /> go\n[\s\S]*I wait\.[\s\S]*> joins this turn[\s\S]*Waited in turn 1\.[\s\S]*> has its own turn/;
    await terminal.shows(inOrder);
    await terminal.shows("○ bash  Wait");
    terminal.type(ctrlC);
    await terminal.shows("turn 2 was interrupted");
    terminal.type("again\r");
    await terminal.shows(/> again\n\nI wait\./);
    await terminal.shows("○ bash  Wait");
    terminal.type(ctrlC + ctrlC);
    expect(await terminal.ended).toBe(0);
    expect(flat(terminal)).toContain(`The session stays. To come back: longhaul chat ${id}`);

    const send = startCliInTest(["send", id, "while you were away"], { env });
    expect(await send.ended).toMatchObject({ code: 0 });
    writeFileSync(join(root, "work", "go4"), "");
    const back = await openChat([id]);
    await back.shows("Waited in turn 4.");
    expect(back.screen.text()).toMatch(/since you left:[\s\S]*> while you were away/);
    expect(count(back.screen.text(), "> while you were away")).toBe(1);
    back.type(ctrlC);
    expect(await back.ended).toBe(0);
  });

  test("is plain with NO_COLOR, and fits a narrow terminal", async () => {
    const terminal = await openChat(model("working"), { NO_COLOR: "1" });
    terminal.resize(24, 40);
    terminal.type("a message that is a good deal longer than one row of forty columns\r");
    await terminal.shows("Round 1 is done.");
    expect(terminal.raw()).not.toMatch(/\u001b\[[\d;]*m/);
    expect(terminal.screen.text()).toContain("* bash  Look around");
    expect(terminal.screen.text()).toMatch(/^> a message that is a good deal longer$/m);
    terminal.type("/quit\r");
    expect(await terminal.ended).toBe(0);
  });
});

describe("a chat in a pipe", () => {
  test("takes each line as a message and prints the transcript plainly", async () => {
    const piped = startCliInTest(["chat", ...model("working")], {
      env,
      cwd: join(root, "work"),
      stdin: "one\n\ntwo",
    });
    const { code, stdout, stderr } = await piped.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(
      /^> one\n\nI look around\.\n[\s\S]*Round 1 is done\.\n\n> two\n[\s\S]*Round 2 is done\.\n$/,
    );
    expect(stdout).not.toContain("\u001b");
  });

  test("a session nobody knows is one line, exit 1", async () => {
    const piped = startCliInTest(["chat", "s-nobody"], { env, stdin: "hi" });
    expect(await piped.ended).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^error: SESSION_NOT_FOUND: [^\n]+\n$/),
    });
  });
});

describe("start with a model", () => {
  test("is the chat on a terminal, with a worker of its own", async () => {
    const own = join(root, "own");
    const terminal = startOnTerminal(["start"], {
      env: userEnvironment({
        LONGHAUL_HOME: own,
        LONGHAUL_MODEL: `scripted:${join(root, "working.yaml")}`,
      }),
    });
    try {
      await terminal.shows(/^❯$/m);
      terminal.type("hello\r");
      await terminal.shows("Round 1 is done.");
      terminal.type("/quit\r");
      expect(await terminal.ended).toBe(0);
      expect(flat(terminal)).toContain("goes on while a worker runs");
      expect(await findProcessesByCommand(own)).toEqual([]);
    } finally {
      await stopServer({ home: own, force: true });
    }
  });
});
