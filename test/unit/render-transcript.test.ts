import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Transcript, type TranscriptOptions } from "../../src/cli/render/transcript.js";
import { terminalOf, widthOf, type Terminal } from "../../src/cli/render/terminal.js";
import type { WatchEvent } from "../../src/client/types.js";
import type { EndReason, EventData, EventType, LogEntry } from "../../src/contracts/log.js";
import type { TodoItem } from "../../src/contracts/todo.js";

const plain: Terminal = { color: false, unicode: true, columns: 80, live: false };

function printed(
  events: readonly WatchEvent[],
  terminal: Terminal = plain,
  options?: TranscriptOptions,
): string {
  let text = "";
  const transcript = new Transcript((piece) => (text += piece), terminal, options);
  for (const event of events) transcript.event(event);
  transcript.end();
  return text;
}

function entry<T extends EventType>(type: T, data: EventData[T]): WatchEvent {
  return { type: "entry", entry: { type, seq: 0, time: 0, data } as LogEntry };
}

const user = (text: string) =>
  entry("user/message", {
    message: { id: "m", role: "user", content: [{ type: "text", text }], source: { kind: "user" } },
  });
const delta = (text: string, step = 1): WatchEvent => ({
  type: "delta",
  turn: 1,
  step,
  kind: "text",
  text,
});
const assistant = (text: string, step = 1, more: { interrupted?: true } = {}) =>
  entry("assistant/message", {
    turn: 1,
    step,
    message: {
      id: "a",
      role: "assistant",
      content: [{ type: "text", text }],
      source: { kind: "model" },
    },
    ...more,
  });
const call = (callId: string, name: string, args: unknown) =>
  entry("tool/call", {
    turn: 1,
    step: 1,
    callId,
    name,
    arguments: typeof args === "string" ? args : JSON.stringify(args),
  });
const result = (
  callId: string,
  text: string,
  more: Partial<EventData["tool/result"]> & { isError?: boolean } = {},
) => {
  const { isError = false, ...rest } = more;
  return entry("tool/result", {
    turn: 1,
    step: 1,
    message: {
      id: "r",
      role: "user",
      content: [
        {
          type: "tool-result",
          callId,
          content: text === "" ? [] : [{ type: "text", text }],
          isError,
        },
      ],
      source: { kind: "tool", callId },
    },
    ...rest,
  });
};
const todos = (...items: readonly (readonly [string, TodoItem["status"]])[]) =>
  entry("todo/write", { todos: items.map(([content, status]) => ({ content, status })) });
const turnEnd = (reason: EndReason) => entry("turn/end", { turn: 1, reason });

const whole = [
  user("Make the data\nand count it"),
  entry("turn/start", { turn: 1 }),
  delta("I will "),
  delta("plan first.\n\n"),
  assistant("I will plan first.\n\n"),
  call("c1", "todo_write", { todos: [] }),
  todos(["make the data", "in_progress"], ["count it", "pending"]),
  result("c1", "Updated todo list: 1 pending, 1 in progress, 0 completed."),
  call("c2", "bash", { command: "seq 3", description: "make the data" }),
  call("c3", "read", { path: "data.txt" }),
  result("c2", "1\n2\n3\n", { meta: { exitCode: 0 } }),
  result("c3", "Error: data.txt does not exist", {
    isError: true,
    error: { name: "Error", code: "TOOL_FAILED" },
  }),
  todos(["make the data", "completed"], ["count it", "in_progress"]),
  delta("Three lines.", 2),
  assistant("Three lines.", 2),
  turnEnd({ kind: "completed" }),
];

describe("a transcript", () => {
  it("shows messages, streamed text, cards and the list as they come", () => {
    expect(printed(whole)).toMatchInlineSnapshot(`
      "> Make the data
      > and count it

      I will plan first.

      Todo  0 of 2 done
        ▸ make the data
        ☐ count it

      ● bash  make the data  → exit 0, 3 lines
      ✗ read  data.txt  → TOOL_FAILED data.txt does not exist

      Todo  1 of 2 done
        ☑ make the data
        ▸ count it

      Three lines.
      "
    `);
  });

  it("is plain ASCII where Unicode is not to be had", () => {
    const text = printed(whole, { ...plain, unicode: false });
    expect(text).toMatchInlineSnapshot(`
      "> Make the data
      > and count it

      I will plan first.

      Todo  0 of 2 done
        [>] make the data
        [ ] count it

      * bash  make the data  -> exit 0, 3 lines
      x read  data.txt  -> TOOL_FAILED data.txt does not exist

      Todo  1 of 2 done
        [x] make the data
        [>] count it

      Three lines.
      "
    `);
    expect(text).toMatch(/^[\n\x20-\x7e]*$/);
  });

  it("leaves the user's own messages out for a chat that shows its input", () => {
    expect(printed([user("hello"), assistant("hi")], plain, { showUser: false })).toBe("hi\n");
  });

  it("names where a message that is not the user's came from", () => {
    const notice = entry("user/message", {
      message: {
        id: "n",
        role: "user",
        content: [{ type: "text", text: "done\nall" }],
        source: { kind: "plugin", name: "x" },
      },
    });
    expect(printed([notice])).toBe("[plugin] done all\n");
  });
});

describe("streamed text", () => {
  it("is completed by the message, never printed twice", () => {
    expect(printed([delta("Hel"), delta("lo"), assistant("Hello, world")])).toBe("Hello, world\n");
    expect(printed([delta("Hello"), assistant("Hello")])).toBe("Hello\n");
    expect(printed([assistant("Hello")])).toBe("Hello\n");
  });

  it("equals the message however it was cut, with control codes gone", () => {
    const texts = fc.array(
      fc.oneof(
        fc.string({ unit: "binary", maxLength: 8 }),
        fc.constantFrom("\u001b[31", "m", "\n", "a b", "👩‍👧"),
      ),
      {
        maxLength: 12,
      },
    );
    fc.assert(
      fc.property(texts, fc.nat({ max: 12 }), (pieces, streamed) => {
        const text = pieces.join("");
        expect(
          printed([...pieces.slice(0, streamed).map((one) => delta(one)), assistant(text)]),
        ).toBe(printed([assistant(text)]));
      }),
    );
  });

  it("goes on where it was when a call that runs again says the same", () => {
    const restart: WatchEvent = { type: "restart", turn: 1, step: 1 };
    const pieces = [delta("Hello, "), delta("wo"), restart, delta("Hel"), restart, delta("Hello")];
    expect(printed([...pieces, delta(", world"), assistant("Hello, world!")])).toBe(
      "Hello, world!\n",
    );
    expect(printed([...pieces, assistant("Hello, wo")])).toBe("Hello, wo\n");
    expect(printed([...pieces, assistant("Hello")])).toBe(
      "Hello, wo\n\n(the reply as it is kept:)\n\nHello\n",
    );
  });

  it("begins anew on a fresh line when a call that runs again says something else", () => {
    expect(
      printed([
        delta("Hello, wo"),
        { type: "restart", turn: 1, step: 1 },
        delta("Hel"),
        delta("p is "),
        assistant("Help is there"),
      ]),
    ).toMatchInlineSnapshot(`
      "Hello, wo

      (this step ran again and says something else)

      Help is there
      "
    `);
  });

  it("says nothing about a restart before any text", () => {
    expect(printed([{ type: "restart", turn: 1, step: 1 }, delta("Hi"), assistant("Hi")])).toBe(
      "Hi\n",
    );
  });

  it("is set right when the message differs from it", () => {
    expect(printed([delta("Helo"), assistant("Hello")])).toBe(
      "Helo\n\n(the reply as it is kept:)\n\nHello\n",
    );
  });

  it("takes no room when it is blank", () => {
    expect(
      printed([
        delta("\n\n"),
        delta("  "),
        assistant("\n\n  "),
        call("c", "ls", {}),
        result("c", "one"),
      ]),
    ).toBe("● ls  → one\n");
  });

  it("is marked when it was interrupted", () => {
    expect(
      printed([
        delta("Half a"),
        assistant("Half a", 1, { interrupted: true }),
        turnEnd({ kind: "aborted", reason: "user" }),
      ]),
    ).toBe("Half a\n\n(interrupted)\nturn 1 was interrupted\n");
  });

  it("leaves reasoning out", () => {
    expect(
      printed([
        { type: "delta", turn: 1, step: 1, kind: "reasoning", text: "hm" },
        delta("Yes"),
        assistant("Yes"),
      ]),
    ).toBe("Yes\n");
  });

  it("cannot move the cursor, set the title or hide what follows", () => {
    const text = "\u001b]0;owned\u0007safe\u001b[2J\u202e";
    expect(printed([delta("\u001b]0;ow"), delta("ned\u0007safe\u001b["), assistant(text)])).toBe(
      "safe\n",
    );
  });
});

describe("a tool card", () => {
  const card = (
    name: string,
    args: unknown,
    text: string,
    more: Parameters<typeof result>[2] = {},
    terminal = plain,
  ) => printed([call("c", name, args), result("c", text, more)], terminal);

  it.each([
    [
      "a description before a command",
      "bash",
      { command: "make", description: "make the data" },
      "1\n2\n3",
      { meta: { exitCode: 0 } },
      "● bash  make the data  → exit 0, 3 lines\n",
    ],
    [
      "the command",
      "bash",
      { command: "make  all\n  two" },
      "",
      { meta: { exitCode: 0 } },
      "● bash  make all two  → exit 0, no output\n",
    ],
    [
      "a failing exit code",
      "bash",
      { command: "false" },
      "no\n[exit code: 3]",
      { meta: { exitCode: 3, signal: null } },
      "● bash  false  → exit 3, 1 line\n",
    ],
    [
      "a signal and a timeout",
      "bash",
      { command: "x" },
      "(no output)\n[timed out after 5 ms]\n[signal: SIGTERM]",
      { meta: { exitCode: null, signal: "SIGTERM", timedOut: true } },
      "● bash  x  → timed out, no output\n",
    ],
    [
      "the code of an error",
      "bash",
      { command: "x" },
      "Error: it was cancelled\nout",
      { isError: true, error: { name: "ToolError", code: "ABORTED" }, meta: { exitCode: null } },
      "✗ bash  x  → ABORTED it was cancelled\n",
    ],
    ["a path", "read", { path: "a.txt" }, "1\n2", {}, "● read  a.txt  → 2 lines\n"],
    [
      "a result of one line itself",
      "write",
      { path: "a.txt" },
      "wrote 3 bytes",
      {},
      "● write  a.txt  → wrote 3 bytes\n",
    ],
    ["other arguments as JSON", "mix", { n: 1 }, "ok", {}, '● mix  {"n":1}  → ok\n'],
    [
      "arguments that are no JSON",
      "mix",
      "{oops",
      "Error: bad",
      { isError: true, error: { name: "E", code: "INVALID_ARGS" } },
      "✗ mix  {oops  → INVALID_ARGS bad\n",
    ],
    [
      "control codes gone",
      "ba\u001b[31msh",
      { command: "\u001b]0;x\u0007ls\r\n" },
      "a\u001b[2Jb",
      {},
      "● bash  ls  → ab\n",
    ],
  ] as const)("tells %s", (_what, name, args, text, more, expected) => {
    expect(card(name, args, text, more)).toBe(expected);
  });

  it("keeps to the width, wide characters counted", () => {
    for (const columns of [20, 40, 80]) {
      for (const [args, text] of [
        [{ command: "x".repeat(300) }, "y".repeat(300)],
        [{ command: "数据".repeat(60) }, "short"],
        [{ command: "short" }, "数据".repeat(60)],
      ] as const) {
        const [line = ""] = card("bash", args, text, {}, { ...plain, columns }).split("\n");
        expect(widthOf(line)).toBeLessThanOrEqual(columns);
        expect(line).toMatch(/^● bash {2}\S+.* {2}→ \S+/u);
      }
    }
  });

  it("is missing for a list that was written, and there for one that was refused", () => {
    expect(printed([call("c", "todo_write", {}), result("c", "Updated todo list: …")])).toBe("");
    expect(
      printed([
        call("c", "todo_write", {}),
        result("c", "Error: invalid todos", { isError: true }),
      ]),
    ).toBe("✗ todo_write  → invalid todos\n");
  });

  it("stands for a result whose call was not seen", () => {
    expect(printed([result("unseen", "ok")])).toBe("● tool  → ok\n");
  });

  it("takes the place of the running line on a terminal", () => {
    const terminal = { ...plain, live: true };
    expect(
      printed(
        [
          call("a", "bash", { command: "one" }),
          call("b", "bash", { command: "two" }),
          result("a", "x"),
          result("b", "y"),
        ],
        terminal,
      ),
    ).toBe(
      [
        "○ bash  one",
        "\r\u001b[2K○ bash  one  (+1 more)",
        "\r\u001b[2K● bash  one  → x\n○ bash  two",
        "\r\u001b[2K● bash  two  → y\n",
      ].join(""),
    );
  });
});

describe("the todo list", () => {
  it("is printed when it changes", () => {
    const first = todos(["a", "pending"]);
    expect(printed([first, first, todos(["a", "completed"])])).toBe(
      "Todo  0 of 1 done\n  ☐ a\n\nTodo  1 of 1 done\n  ☑ a\n",
    );
  });

  it("is coloured on a terminal", () => {
    const terminal = terminalOf({ isTTY: true, columns: 80 }, { LANG: "C.UTF-8" });
    expect(
      printed([todos(["a", "completed"], ["b", "in_progress"])], { ...terminal, live: false }),
    ).toBe(
      "\u001b[1mTodo\u001b[22m  \u001b[2m1 of 2 done\u001b[22m\n\u001b[2m  ☑ a\u001b[22m\n\u001b[36m  ▸ b\u001b[39m\n",
    );
  });

  it("cuts long todos to the width", () => {
    const [, line = ""] = printed([todos(["數".repeat(100), "pending"])]).split("\n");
    expect(widthOf(line)).toBeLessThanOrEqual(80);
    expect(line.endsWith("…")).toBe(true);
  });

  it("says when a change was refused", () => {
    expect(
      printed([
        entry("todo/rejected", {
          opId: "o",
          message: "invalid todos: x",
          code: "INVALID_TODOS",
        }),
      ]),
    ).toBe("todo change refused: invalid todos: x\n");
  });
});

describe("the end of a turn", () => {
  it.each([
    [{ kind: "completed" }, ""],
    [{ kind: "aborted", reason: "user" }, "turn 1 was interrupted\n"],
    [{ kind: "aborted", reason: "disposed" }, "turn 1 was aborted (disposed)\n"],
    [{ kind: "blocked", message: "no\nway" }, "turn 1 was blocked: no way\n"],
    [{ kind: "blocked" }, "turn 1 was blocked\n"],
    [{ kind: "error", code: "AUTH", message: "bad key" }, "turn 1 failed: AUTH: bad key\n"],
    [{ kind: "max-tokens" }, "turn 1 stopped at the token limit\n"],
    [{ kind: "interrupted" }, "turn 1 was cut off\n"],
  ] as const)("of kind %j is told in one line, unless it completed", (reason, expected) => {
    expect(printed([turnEnd(reason)])).toBe(expected);
  });
});

describe("troubles on the way", () => {
  const retry = entry("llm/retry", {
    retryId: "r",
    turn: 1,
    step: 1,
    provider: "p",
    mode: "auto",
    policy: "default",
    retry: 2,
    max: 5,
    delayMs: 1_500,
    failure: { code: "RATE_LIMIT", message: "slow\ndown" },
  });

  it("shows a retry as one dim line and drops what came before it", () => {
    expect(printed([retry])).toBe("retry 2 of 5 in 1.5 s: RATE_LIMIT: slow down\n");
    expect(printed([delta("Hal"), retry, delta("Whole"), assistant("Whole")])).toBe(
      "Hal\n\n(what came so far is dropped)\nretry 2 of 5 in 1.5 s: RATE_LIMIT: slow down\n\nWhole\n",
    );
    expect(printed([retry], { ...plain, color: true })).toBe(
      "\u001b[2mretry 2 of 5 in 1.5 s: RATE_LIMIT: slow down\u001b[22m\n",
    );
  });

  it("says when the connection goes and comes back", () => {
    expect(
      printed([
        { type: "connection", up: false, message: "no worker" },
        { type: "connection", up: true, message: "" },
      ]),
    ).toBe("waiting: no worker\nit goes on\n");
  });

  const failing = `/some/dir/bad.yaml:4:9: turns[0].steps[0]: unknown key "txt"; ${"use one of text, calls ".repeat(6)}end`;
  const told: readonly (readonly [string, readonly WatchEvent[], string])[] = [
    [
      "a turn's error",
      [turnEnd({ kind: "error", code: "INVALID_SCENARIO", message: failing })],
      `turn 1 failed: INVALID_SCENARIO: ${failing}`,
    ],
    ["why it waits", [{ type: "connection", up: false, message: failing }], `waiting: ${failing}`],
    [
      "the error of a call",
      [
        call("c", "bash", { description: "Slow" }),
        result("c", `Error: ${failing}`, {
          isError: true,
          error: { name: "ToolError", code: "TOOL_OUTCOME_UNKNOWN" },
        }),
      ],
      `✗ bash  Slow  → TOOL_OUTCOME_UNKNOWN ${failing}`,
    ],
  ];

  it.each(told)("tells %s whole on one line where there is no terminal", (_what, events, text) => {
    expect(printed(events)).toBe(`${text}\n`);
  });

  it.each(told)("tells %s whole on a terminal, wrapped at its width", (_what, events, text) => {
    for (const columns of [20, 40, 81]) {
      const rows = printed(events, { ...plain, columns, wrap: true })
        .trimEnd()
        .split("\n");
      expect(rows.length).toBeGreaterThan(2);
      for (const row of rows) expect(widthOf(row.trimEnd())).toBeLessThanOrEqual(columns);
      const words = (some: string) => some.replaceAll(/\s+|…/g, "");
      expect(words(rows.join(""))).toBe(words(text));
    }
  });

  it("cuts what a plugin says to the width", () => {
    const message = {
      id: "n",
      role: "user" as const,
      content: [{ type: "text" as const, text: "x".repeat(500) }],
      source: { kind: "plugin" as const, name: "x" },
    };
    const [line = ""] = printed([entry("user/message", { message })]).split("\n");
    expect(widthOf(line)).toBe(80);
  });
});
