import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fit, pad, styled, terminalOf, widthOf } from "../../src/cli/render/terminal.js";

const utf8 = { LANG: "en_US.UTF-8" };
const tty = { isTTY: true, columns: 120 };

describe("what the output can show", () => {
  it("is colours and Unicode on a UTF-8 terminal", () => {
    expect(terminalOf(tty, utf8)).toEqual({
      color: true,
      unicode: true,
      columns: 120,
      live: true,
      wrap: true,
    });
  });

  it("is 80 columns without colours when it is no terminal", () => {
    expect(terminalOf({ columns: 200 }, utf8)).toEqual({
      color: false,
      unicode: true,
      columns: 80,
      live: false,
      wrap: false,
    });
  });

  it.each([
    ["NO_COLOR", { ...utf8, NO_COLOR: "1" }],
    ["TERM=dumb", { ...utf8, TERM: "dumb" }],
    ["a locale that is not UTF-8", { LANG: "C" }],
    ["LC_ALL before LANG", { ...utf8, LC_ALL: "POSIX" }],
    ["no locale", {}],
  ])("is plain ASCII with %s", (_what, env) => {
    expect(terminalOf(tty, env).unicode).toBe(false);
  });

  it("has no colours with NO_COLOR, which counts only when it is not empty", () => {
    expect(terminalOf(tty, { ...utf8, NO_COLOR: "1" }).color).toBe(false);
    expect(terminalOf(tty, { ...utf8, NO_COLOR: "" }).color).toBe(true);
    expect(styled(terminalOf(tty, { ...utf8, NO_COLOR: "1" }), "red", "x")).toBe("x");
    expect(styled(terminalOf(tty, utf8), "red", "x")).toBe("\u001b[31mx\u001b[39m");
  });
});

describe("widths", () => {
  it.each([
    ["abcdef", 6, "abcdef"],
    ["abcdefg", 6, "abcde…"],
    ["你好世界", 8, "你好世界"],
    ["你好世界", 7, "你好世…"],
    ["你好世界", 6, "你好…"],
    ["👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", 5, "👩‍👩‍👧👩‍👩‍👧…"],
    ["abc", 1, "…"],
    ["abc", 0, ""],
    ["", 0, ""],
  ])("cuts %j to %i columns at a whole character", (text, columns, expected) => {
    expect(fit(text, columns, "…")).toBe(expected);
  });

  it("never exceeds the columns and keeps what fits", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme" }),
        fc.nat({ max: 40 }),
        fc.constantFrom("…", "..."),
        (text, columns, ellipsis) => {
          const cut = fit(text, columns, ellipsis);
          expect(widthOf(cut)).toBeLessThanOrEqual(columns);
          expect(cut === text).toBe(widthOf(text) <= columns);
        },
      ),
    );
  });

  it("fills up by columns, not by letters", () => {
    expect(pad("你好", 6)).toBe("你好  ");
    expect(pad("long", 2)).toBe("long");
  });
});
