import { describe, expect, it } from "vitest";
import { commands } from "../../src/cli/commands/index.js";
import { currentDirectory } from "../../src/cli/current-directory.js";
import { runCli } from "../../src/cli/run.js";
import { fakeIo, noBackend } from "../support/fake-cli.js";

async function line(...argv: string[]) {
  const io = fakeIo();
  const exitCode = await runCli(argv, io, { commands, version: "1.2.3", openBackend: noBackend });
  return { exitCode, stdout: io.out.text, stderr: io.err.text };
}

describe("help", () => {
  it("lists every command, for no words as well", async () => {
    const { exitCode, stdout, stderr } = await line("--help");
    expect(exitCode).toBe(0);
    expect(stderr).toBe("");
    for (const { name, summary } of commands)
      expect(stdout).toMatch(new RegExp(`^ {2}${name}\\b.* {2}${summary}$`, "m"));
    expect((await line()).stdout).toBe(stdout);
    expect((await line("help")).stdout).toBe(stdout);
  });

  it.each(commands.map((command) => [command.name, command] as const))(
    "of %s names its words and every option",
    async (name, command) => {
      const { exitCode, stdout, stderr } = await line(...name.split(" "), "--help");
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      expect(stdout).toContain(
        `Usage: longhaul ${name}${command.words === "" ? "" : ` ${command.words}`} [options]`,
      );
      for (const option of [...Object.keys(command.options), "help"])
        expect(stdout).toMatch(new RegExp(`^ {2}--${option}\\b.* {2}\\S`, "m"));
      expect(Math.max(...stdout.split("\n").map((row) => row.length))).toBeLessThanOrEqual(120);
      expect((await line("help", ...name.split(" "))).stdout).toBe(stdout);
    },
  );

  it("wins over mistakes beside it", async () => {
    expect((await line("log", "--nonsense", "-h")).exitCode).toBe(0);
  });

  it("of a group lists its commands", async () => {
    const { exitCode, stdout } = await line("server", "--help");
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/server start .*\n.*server stop .*\n.*server status /);
  });
});

describe("the version", () => {
  it("is printed by both ways to ask", async () => {
    expect(await line("--version")).toEqual({ exitCode: 0, stdout: "1.2.3\n", stderr: "" });
    const { stdout } = await line("version", "--json");
    expect(JSON.parse(stdout)).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.versions.node,
    });
  });
});

describe("a mistake on the command line", () => {
  it.each(["0", "-1", "1.5", "many"])("is worker --max-jobs %s", async (jobs) => {
    expect(await line("worker", "--max-jobs", jobs)).toEqual({
      exitCode: 2,
      stdout: "",
      stderr: `error: USAGE: --max-jobs expected a whole number of at least 1, got "${jobs}"\n`,
    });
  });

  it.each([
    [["strat"], 'unknown command "strat"; did you mean "start"?'],
    [["sesions"], 'unknown command "sesions"; did you mean "sessions"?'],
    [["frobnicate"], 'unknown command "frobnicate" (see longhaul --help)'],
    [["--hlep"], 'unknown option "--hlep" before a command; did you mean "--help"?'],
    [["server"], "server needs one of start, stop, status"],
    [["server", "sttop"], 'unknown command "server sttop"; did you mean "stop"?'],
    [["log", "s", "--folow"], 'unknown option "--folow"; did you mean "--follow"?'],
    [["log", "s", "-g"], 'unknown option "-g" (see longhaul log --help)'],
    [["log", "s", "--constructor"], 'unknown option "--constructor"'],
    [["log"], "log expected <session>, got nothing"],
    [["log", ""], "log expected <session>, got an empty word"],
    [["log", "a", "b"], 'log got "b" too many; it takes <session>'],
    [["version", "now"], 'version got "now" too many; it takes no words'],
    [["log", "s", "--after"], "--after expected <n>, got nothing"],
    [["log", "s", "--after", "--follow"], "--after expected <n>, got nothing"],
    [["log", "s", "--after", "x"], '--after expected a whole number, got "x"'],
    [["log", "s", "--json=yes"], '--json takes no value, got "yes"'],
    [["sessions", "--state", "runing"], 'got "runing"; did you mean "running"?'],
    [["worker", "--role", "cook"], '--role expected session, host or both, got "cook"'],
    [["send", "s"], 'send expected <session> "text", got "s"'],
    [["send", "s", " "], "send expected a text, got a blank one"],
    [["send", "s", "t", "--steer", "--inject"], "send takes --steer or --inject, not both"],
    [["todo", "s", "sett"], 'todo knows "set" after the session, got "sett"'],
    [["todo", "s", "set"], "todo set expected 'content' ... or --file, got nothing"],
    [["todo", "s", "--file", "x"], "--file goes with set"],
    [["todo", "s", "set", "a", "--file", "x"], "todo set takes --file or contents, not both"],
    [
      ["todo", "s", "set", "--file", "/does/not/exist"],
      "--file expected a readable file, got ENOENT",
    ],
    [["start", "--scenario", "/does/not/exist"], "--scenario expected a file, got /does/not/exist"],
    [
      ["run", "task", "--model", "gpt"],
      '--model expected provider/model or scripted:<file>, got "gpt"',
    ],
  ])("%j is one line that says what to do, and exit code 2", async (argv, expected) => {
    const { exitCode, stdout, stderr } = await line(...argv);
    expect(stderr).toContain(expected);
    expect(stderr).toMatch(/^error: USAGE: [^\n]+\n$/);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  });

  it.each([
    [["show", "--json"], "show expected <session>, got nothing (see longhaul show --help)"],
    [
      ["log", "s", "--after", "--json"],
      "--after expected <n>, got nothing (see longhaul log --help)",
    ],
  ])("%j is one line of JSON", async (argv, message) => {
    const { exitCode, stdout, stderr } = await line(...argv);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toBe(`${JSON.stringify({ error: { code: "USAGE", message } })}\n`);
  });

  it("is no JSON for a --json that is a word", async () => {
    expect((await line("show", "--", "--json", "x")).stderr).toMatch(/^error: USAGE: /);
  });
});

describe("a current directory that was deleted", () => {
  it("is told in one line by every command", async () => {
    const deleted = () => {
      throw new Error("ENOENT: no such file or directory, uv_cwd");
    };
    for (const { name, minWords } of commands) {
      const io = fakeIo();
      const gone = {
        ...io,
        get cwd() {
          return currentDirectory(deleted);
        },
      };
      const argv = [...name.split(" "), ...Array.from({ length: minWords }, () => "x")];
      const exitCode = await runCli(argv, gone, {
        commands,
        version: "0",
        openBackend: noBackend,
      });
      expect({ name, exitCode, stdout: io.out.text, stderr: io.err.text }).toEqual({
        name,
        exitCode: 1,
        stdout: "",
        stderr:
          "error: WORKSPACE: the current directory no longer exists; change to one that does\n",
      });
    }
  });

  it("is what is asked when it is there", () => {
    expect(currentDirectory(() => "/there")).toBe("/there");
  });
});
