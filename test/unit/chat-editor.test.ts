import fc from "fast-check";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Editor } from "../../src/cli/chat/editor.js";
import { viewOf } from "../../src/cli/chat/editor-view.js";
import { History, openHistory } from "../../src/cli/chat/history.js";
import { KeyReader, type Key } from "../../src/cli/chat/keys.js";
import { widthOf } from "../../src/cli/render/terminal.js";

/** The editor after some terminal input, `|` where the cursor is, and what was sent. */
function typed(input: string, entries: readonly string[] = []) {
  const editor = new Editor(new History(entries));
  const sent: string[] = [];
  for (const key of new KeyReader().push(input)) {
    const text = editor.key(key);
    if (text !== undefined) sent.push(text);
  }
  const { text, cursor } = editor;
  return { text: `${text.slice(0, cursor)}|${text.slice(cursor)}`, sent };
}

const esc = "\u001b";
const [up, down, left, right] = ["A", "B", "D", "C"].map((letter) => `${esc}[${letter}`);

describe("keys", () => {
  const bytes = `aé日\r\n${esc}\r${esc}[A${esc}OB${esc}[3~${esc}[1;5C${esc}b\u0003\u0004\u000f${esc}[200~one\r\ntwo\ttab${esc}[31m${esc}[201~z${esc}[13;2u`;
  const keys: readonly Key[] = [
    { type: "text", text: "aé日" },
    { type: "enter" },
    { type: "newline" },
    { type: "newline" },
    { type: "up" },
    { type: "down" },
    { type: "delete" },
    { type: "word-right" },
    { type: "word-left" },
    { type: "interrupt" },
    { type: "end-of-input" },
    { type: "open" },
    { type: "paste", text: "one\ntwo\ttab" },
    { type: "text", text: "z" },
    { type: "newline" },
  ];

  it("are read from what a terminal sends", () => {
    expect(new KeyReader().push(bytes)).toEqual(keys);
  });

  it("are the same however the input is cut", () => {
    const joined = (all: readonly Key[]) =>
      all.reduce<Key[]>((before, key) => {
        const last = before.at(-1);
        if (key.type === "text" && last?.type === "text")
          return [...before.slice(0, -1), { type: "text", text: last.text + key.text }];
        return [...before, key];
      }, []);
    fc.assert(
      fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 6 }), (cuts) => {
        const reader = new KeyReader();
        const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((to, index) => bytes.slice(places[index], to));
        expect(joined(pieces.flatMap((piece) => reader.push(piece)))).toEqual(keys);
        expect(reader.waiting).toBe(false);
      }),
    );
  });

  it("know Escape alone by the silence after it", () => {
    const reader = new KeyReader();
    expect(reader.push(esc)).toEqual([]);
    expect(reader.waiting).toBe(true);
    expect(reader.flush()).toEqual([{ type: "escape" }]);
    expect(reader.flush()).toEqual([]);
  });

  it("leave out what they do not know", () => {
    expect(new KeyReader().push(`${esc}[99;5~${esc}x\u0001\u001f`)).toEqual([{ type: "home" }]);
  });
});

describe("the editor", () => {
  it.each([
    ["sends with Enter, and not what is blank", "hi\r  \r", "  |", ["hi"]],
    [
      "takes another line by Alt+Enter, Ctrl-J and a backslash",
      `a${esc}\rb\nc\\\rd`,
      "a\nb\nc\nd|",
      [],
    ],
    ["keeps the newlines of a paste", `${esc}[200~a\nb${esc}[201~\r`, "|", ["a\nb"]],
    ["moves and deletes by characters as a person sees them", `x👩‍👧y${left}\u007f`, "x|y", []],
    ["deletes to the right", `日本${left}${left}${esc}[3~`, "|本", []],
    ["joins lines", `a\nb${left}\u007f`, "a|b", []],
    ["moves by words", `one two${esc}b${esc}b${esc}f`, "one| two", []],
    ["deletes a word", "one two \u0017", "one |", []],
    ["deletes to the ends of the line", `a\nbcd${left}\u000b\u0015`, "a\n|", []],
    ["goes to the ends of the line", `ab\ncd\u0001x\u0005y`, "ab\nxcdy|", []],
    [
      "moves between lines to the same place, or the end of a shorter one",
      `abc\nd\n日本語${left}${up}${up}`,
      "a|bc\nd\n日本語",
      [],
    ],
  ] as const)("%s", (_title, input, text, sent) => {
    expect(typed(input)).toEqual({ text, sent });
  });

  it("brings back what was sent, and what was being written", () => {
    const entries = ["first", "second\nline"];
    expect(typed(`draft${up}`, entries).text).toBe("second\nline|");
    expect(typed(`draft${up}${up}${up}`, entries).text).toBe("first|");
    expect(typed(`draft${up}${up}${up}${down}${down}${down}`, entries).text).toBe("draft|");
    expect(typed(`${up}\r${up}${up}`, ["one"])).toEqual({ text: "one|", sent: ["one"] });
  });

  it("stays a text with a cursor between characters, whatever is pressed", () => {
    const arrows = [up, down, left, right].map(String);
    const pieces = fc.constantFrom(
      "a",
      "日",
      "👩‍👧",
      " ",
      "\n",
      "\\\r",
      "\r",
      "\u007f",
      "\u0017",
      "\u0015",
      "\u000b",
      `${esc}[3~`,
      `${esc}b`,
      `${esc}f`,
      "\u0001",
      "\u0005",
      ...arrows,
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (input) => {
        const { text } = typed(input.join(""), ["old", "older\nlines"]);
        expect(text.replace("|", "")).not.toMatch(/\p{Surrogate}/u);
        expect(text).not.toMatch(/\u200d\|/);
      }),
    );
  });
});

describe("the view of the editor", () => {
  const view = (text: string, cursor: number, columns: number, rows = 99) =>
    viewOf(text, cursor, "> ", { columns, rows });

  it("breaks rows at the width and puts the cursor where it is", () => {
    expect(view("hello", 5, 20)).toEqual({ rows: ["> hello"], row: 0, column: 7 });
    expect(view("abcdef\ngh", 3, 6)).toEqual({
      rows: ["> abc", "  def", "  gh"],
      row: 1,
      column: 2,
    });
    expect(view("日本", 2, 6)).toEqual({
      rows: ["> 日", "  本"],
      row: 1,
      column: 4,
    });
  });

  it("has room for a cursor after a full row, and scrolls to it", () => {
    expect(view("abc", 3, 6)).toEqual({ rows: ["> abc", "  "], row: 1, column: 2 });
    expect(view("1\n2\n3\n4", 7, 20, 2)).toEqual({ rows: ["  3", "  4"], row: 1, column: 3 });
    expect(view("1\n2\n3\n4", 0, 20, 2)).toEqual({ rows: ["> 1", "  2"], row: 0, column: 2 });
  });

  it("never has a row wider than the terminal but one, and always a cursor in it", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "日", " ", "\n", "\t", "👩‍👧"),
      maxLength: 60,
    });
    fc.assert(
      fc.property(
        text,
        fc.integer({ min: 8, max: 30 }),
        fc.integer({ min: 1, max: 5 }),
        (some, columns, rows) => {
          const shown = view(some, some.length, columns, rows);
          for (const row of shown.rows) expect(widthOf(row)).toBeLessThan(columns);
          expect(shown.rows.length).toBeLessThanOrEqual(rows);
          expect(shown.rows[shown.row]).toBeDefined();
          expect(shown.column).toBeLessThan(columns);
        },
      ),
    );
  });
});

describe("the history file", () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "longhaul-history-"));
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  it("is there for the next chat, and for its owner only", async () => {
    const path = join(dir, "home", "chat-history");
    const first = await openHistory(path);
    first.history.add("one\nline");
    first.history.add("one\nline");
    first.history.add("two");
    await first.written();
    expect(readFileSync(path, "utf8")).toBe('"one\\nline"\n"two"\n');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const second = (await openHistory(path)).history;
    expect([second.older(""), second.older(""), second.older("")]).toEqual([
      "two",
      "one\nline",
      undefined,
    ]);
  });

  it("is shortened when it is long, and lines that are none are left out", async () => {
    const path = join(dir, "chat-history");
    const lines = Array.from({ length: 2_500 }, (_, n) => JSON.stringify(`m${n}`));
    writeFileSync(path, `not json\n${lines.join("\n")}\n`);
    expect((await openHistory(path)).history.older("")).toBe("m2499");
    expect(readFileSync(path, "utf8").trimEnd().split("\n")).toEqual(lines.slice(-1_000));
  });

  it("that cannot be written costs no message", async () => {
    const { history, written } = await openHistory(join("/dev/null", "chat-history"));
    history.add("one");
    await written();
    expect(history.older("")).toBe("one");
  });
});
