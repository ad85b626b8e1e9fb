import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clean, Cleaner, oneLine } from "../../src/cli/render/clean.js";

const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/u;

describe("text of models and tools on a terminal", () => {
  it.each([
    ["colours", "a\u001b[31mred\u001b[0mb", "aredb"],
    ["cursor moves with intermediate bytes", "a\u001b[?25 lb\u001b[2J", "ab"],
    ["a title set by OSC and BEL", "a\u001b]0;owned\u0007b", "ab"],
    ["a link set by OSC and ST", "a\u001b]8;;http://x\u001b\\text\u001b]8;;\u001b\\b", "atextb"],
    ["a device control string", "a\u001bPq#0\u001b\\b", "ab"],
    ["sequences begun by C1 bytes", "a\u009b31mb\u009d0;t\u009cc", "abc"],
    ["two-character escapes and charsets", "a\u001bcb\u001b(Bc", "abc"],
    ["C0 but newline and tab", "a\u0000\u0008\r\n\tb\u007f", "a\n\tb"],
    ["bidirectional overrides", "a\u202egnp.exe\u202c\u2066b\u2069", "agnp.exeb"],
    ["an escape inside an unfinished one", "a\u001b[\u001b[31mb", "ab"],
    ["lone surrogates", "a\ud800b", "a\ufffdb"],
  ])("loses %s", (_what, given, expected) => {
    expect(clean(given)).toBe(expected);
  });

  it("shows what follows an unfinished sequence from the next line on", () => {
    expect(clean("a\u001b]0;never ended\nthe rest")).toBe("a\nthe rest");
    expect(clean("a\u001b[31\nthe rest")).toBe("a\nthe rest");
  });

  it("keeps right-to-left and wide text as it is", () => {
    for (const text of ["שלום עולם", "你好，世界", "👩‍👩‍👧 é e\u0301"]) expect(clean(text)).toBe(text);
  });

  it("is one line with single spaces where a line is needed", () => {
    expect(oneLine("  a\n\n\tb\u001b[2J   c\u2028d ")).toBe("a b c d");
  });

  const piece = fc.oneof(
    fc.string({ unit: "binary", maxLength: 12 }),
    fc.constantFrom(
      "\u001b[",
      "\u001b]",
      "\u001b",
      "31m",
      "\u0007",
      "\u001b\\",
      "\u009b",
      "\u009d",
      "\u009c",
      "\n",
      "\t",
      "text",
      "👩‍👧",
      "\ud83d",
      "\udc69",
    ),
  );

  it("never lets a control character through, wherever a stream is cut", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        const cleaner = new Cleaner();
        const streamed = pieces.map((one) => cleaner.push(one)).join("") + cleaner.end();
        expect(streamed).not.toMatch(unsafe);
        expect(streamed).toBe(clean(pieces.join("")));
        expect(clean(streamed)).toBe(streamed);
      }),
      { numRuns: 2_000 },
    );
  });

  it("changes nothing that is already safe", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        fc.pre(!unsafe.test(text));
        expect(clean(text)).toBe(text);
      }),
    );
  });
});
