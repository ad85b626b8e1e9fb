import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Screen, type Footer } from "../../src/cli/chat/screen.js";
import { wrapLine } from "../../src/cli/render/wrap.js";
import { widthOf } from "../../src/cli/render/terminal.js";
import { EmulatedScreen } from "../support/screen.js";

const atEnd = (row: string): Footer => ({ rows: ["", row], row: 1, column: widthOf(row) });

function screen(rows = 10, columns = 20, schedule = (draw: () => void) => draw()) {
  const size = { rows, columns };
  const at = { terminal: new EmulatedScreen(rows, columns), size };
  const drawn = new Screen(
    (text) => at.terminal.write(text),
    () => size,
    schedule,
  );
  return Object.assign(at, { drawn });
}

describe("a long line", () => {
  it("is broken between words, and within a word only when that is longer than a row", () => {
    expect(wrapLine("one two three", 8)).toEqual(["one two", "three"]);
    expect(wrapLine("a abcdefghij b", 4)).toEqual(["a", "abcd", "efgh", "ij b"]);
    expect(wrapLine("日本語テキスト", 5)).toEqual(["日本", "語テ", "キス", "ト"]);
    expect(wrapLine("    code", 20)).toEqual(["    code"]);
    expect(wrapLine("\u001b[1mone two\u001b[22m", 4)).toEqual(["\u001b[1mone", "two\u001b[22m"]);
    expect(wrapLine("", 4)).toEqual([""]);
  });

  it("keeps every character but blanks, in rows no wider than asked", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "日", " ", "\t", "👩‍👧", "b "),
      maxLength: 80,
    });
    fc.assert(
      fc.property(text, fc.integer({ min: 2, max: 20 }), (line, columns) => {
        const rows = wrapLine(line, columns);
        expect(rows.join("").replaceAll(/\s/g, "")).toBe(line.replaceAll(/\s/g, ""));
        for (const row of rows) expect(widthOf(row.trimEnd())).toBeLessThanOrEqual(columns);
      }),
    );
  });
});

describe("the screen", () => {
  it("keeps the footer below text that grows in pieces", () => {
    const { terminal, drawn } = screen();
    drawn.setFooter(atEnd("> typed"));
    for (const piece of ["Hel", "lo", ", wor", "ld\nsecond ", "line"]) drawn.print(piece);
    expect(terminal.text()).toBe("Hello, world\nsecond line\n\n> typed");
    expect(terminal.cursor).toEqual({ row: 3, column: 7 });
    drawn.setFooter(atEnd("> typed more"));
    expect(terminal.text()).toBe("Hello, world\nsecond line\n\n> typed more");
  });

  it("shows all of a long text once, however it is cut and whatever the footer does meanwhile", () => {
    const words = fc.array(fc.constantFrom("one ", "日本", "longerthanarow", "\n", " ", "\n\n"), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(words, fc.array(fc.nat({ max: 3 }), { maxLength: 40 }), (pieces, footers) => {
        const { terminal, drawn } = screen(6, 12);
        for (const [index, piece] of pieces.entries()) {
          const height = footers[index] ?? 1;
          drawn.setFooter({
            rows: Array.from({ length: height + 1 }, (_, n) => `f${n}`),
            row: 0,
            column: 1,
          });
          drawn.print(piece);
        }
        drawn.setFooter(atEnd(">"));
        drawn.end();
        expect(terminal.text().replaceAll(/\s/g, "")).toBe(pieces.join("").replaceAll(/\s/g, ""));
      }),
    );
  });

  it("leaves the transcript and a cursor on a fresh line", () => {
    const { terminal, drawn } = screen();
    drawn.setFooter(atEnd("> half"));
    drawn.print("an open line");
    drawn.end();
    expect(terminal.text()).toBe("an open line");
    expect(terminal.cursor).toEqual({ row: 1, column: 0 });
    expect([...terminal.modes]).toEqual(["25"]);
  });

  it("draws the footer anew where the terminal has folded its rows", () => {
    const at = screen(10, 20, () => {});
    at.drawn.print("transcript\n");
    at.drawn.setFooter({ rows: ["", "a status of 18 cols", "> x"], row: 2, column: 3 });
    at.drawn.draw();
    // Narrower, the status takes two rows: the cursor is one lower than it was put.
    at.terminal = new EmulatedScreen(10, 12);
    at.terminal.write("transcript\r\n\r\na status of 18 cols\r\n> x");
    at.size.columns = 12;
    at.drawn.setFooter({ rows: ["", "a status", "> x"], row: 2, column: 3 });
    at.drawn.resized();
    expect(at.terminal.text()).toBe("transcript\n\na status\n> x");
  });
});
