import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  maxRows,
  packHex,
  packInts,
  packTexts,
  unpackHex,
  unpackInts,
  unpackTexts,
} from "../../src/domain/pack-column.js";
import { packRepeats, readRepeats, unpackRepeats } from "../../src/domain/pack-repeats.js";
import { packRows, unpackRows } from "../../src/domain/pack-rows.js";

/** Texts that look like what stands for others. */
const oddTexts = ["", "\u0000", "\u0000=", "\u0000=0", "\u0000==1", "\u0000body:x", " |~^\u007f"];
const word = fc.oneof(
  fc.constantFrom(...oddTexts, "message-1", "message-12", "__proto__", "0".repeat(64)),
  fc.string({ unit: "binary", maxLength: 50 }),
  fc.stringMatching(/^[0-9a-f]{16}$/u),
);
const scalar = fc.oneof(
  word,
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noDefaultInfinity: true, noNaN: true }),
  fc.boolean(),
  fc.constant(null),
);
const hexes = [1, 2, 3, 4, 7].map((length) =>
  fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`, "u")),
);
/** JSON with lists of like rows and with values that come again, which no random value has. */
const { value: anyJson } = fc.letrec<{ value: unknown; row: unknown }>((tie) => ({
  row: fc
    .tuple(fc.uniqueArray(word, { maxLength: 4 }), fc.array(scalar, { minLength: 4, maxLength: 4 }))
    .map(([keys, values]) => Object.fromEntries(keys.map((key, at) => [key, values[at]]))),
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    fc.array(tie("value"), { maxLength: 6 }),
    fc.dictionary(word, tie("value"), { maxKeys: 5, noNullPrototype: true }),
    fc
      .tuple(
        fc.array(tie("row"), { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(2), { maxLength: 12 }),
      )
      .map(([rows, places]) => places.map((place) => rows[place % rows.length])),
    fc.array(fc.tuple(fc.nat(), word, fc.boolean()), { maxLength: 8 }),
    fc.oneof(
      ...[fc.integer(), word, ...hexes].map((one) => fc.array<unknown>(one, { maxLength: 12 })),
    ),
  ),
}));
const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const whole = (value: unknown): unknown => {
  const { value: told, repeats } = packRepeats(value);
  const [wire, repeatsWire] = [json(packRows(told)), json(packRows(repeats))];
  return unpackRepeats(unpackRows(wire), readRepeats(unpackRows(repeatsWire)) ?? []);
};

describe("packed JSON", () => {
  test("is unpacked to the same text, whatever it was", () => {
    fc.assert(
      fc.property(anyJson, (given) => {
        const value = json(given);
        expect(JSON.stringify(whole(value))).toBe(JSON.stringify(value));
      }),
      { numRuns: 2_000 },
    );
  });

  test("is no longer than before, but for what marks its odd texts", () => {
    fc.assert(
      fc.property(anyJson, (given) => {
        const value = json(given);
        const before = JSON.stringify(value);
        if (before.includes("\\u0000")) return;
        expect(JSON.stringify(packRows(value)).length).toBeLessThanOrEqual(before.length);
      }),
      { numRuns: 1_000 },
    );
  });

  test("of a thousand known messages takes 15 bytes each beside its digest in place of 45, of as many ended jobs 40 in place of 290", () => {
    let hash = 7;
    const hex = (length: number): string =>
      Array.from({ length }, () => {
        hash = (hash * 1_103_515_245 + 12_345) % 2_147_483_648;
        return ((hash >> 16) & 15).toString(16);
      }).join("");
    const seen = Array.from({ length: 1_000 }, (_, index) => [
      `message-${9_000 + index}`,
      hex(16),
      130_000 + index * 14 + (index % 3),
    ]);
    expect(JSON.stringify(seen).length).toBeGreaterThan(39_000);
    expect(JSON.stringify(packRows(seen)).length).toBeLessThan(17_500);
    const jobs = Array.from({ length: 1_000 }, (_, index) => ({
      id: `bash-${index}`,
      kind: "bash",
      label: "echo x",
      owner: 0,
      form: "stream",
      nonce: hex(12),
      opId: `j-mx3s${index.toString(36).padStart(4, "0")}-${hex(12)}`,
      status: "completed",
      reported: false,
      startedAt: 1_796_074_424_713 + index * 8_153,
      offsets: {},
      detail: "exit code: 0",
      finishedAt: 1_796_074_425_063 + index * 8_151,
      output: { at: "streams" },
    }));
    expect(JSON.stringify(jobs).length).toBeGreaterThan(270_000);
    expect(JSON.stringify(packRows(jobs)).length).toBeLessThan(40_000);
    expect(whole({ seen, jobs })).toEqual({ seen, jobs });
  });

  test("tells a long value that comes again once, also within one that comes again itself", () => {
    const inner = { text: "a sentence of more than forty characters, no less" };
    const outer = { inner, more: [inner, "more"] };
    const { value, repeats } = packRepeats([outer, inner, outer]);
    expect(repeats).toHaveLength(2);
    expect(JSON.stringify([value, repeats]).split(inner.text)).toHaveLength(2);
    expect(unpackRepeats(value, readRepeats(repeats) ?? [])).toEqual([outer, inner, outer]);
  });

  test("has no key whose value is undefined", () => {
    const rows = Array.from({ length: 9 }, (_, at) => ({ at, one: at % 2 === 0 ? at : undefined }));
    expect(JSON.stringify(whole({ rows }))).toBe(JSON.stringify({ rows }));
  });

  test("that is damaged is read as something or as nothing, and never throws", () => {
    const rows = Array.from({ length: 6 }, (_, at) => ({
      id: `a-${at}`,
      at,
      hex: `0${at}`,
      on: true,
    }));
    const packed = JSON.stringify(packRows({ rows, tuples: rows.map(({ id, at }) => [id, at]) }));
    expect(packed).toContain("rows");
    fc.assert(
      fc.property(
        fc.nat(packed.length - 1),
        fc.constantFrom("0", '"', "[", "]", "{", "}", "-", " ", "*", "a", "~", ",", "9"),
        (at, put) => {
          const text = packed.slice(0, at) + put + packed.slice(at + 1);
          let wire: unknown;
          try {
            wire = JSON.parse(text);
          } catch {
            return;
          }
          unpackRows(wire);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  const broken: readonly (readonly [string, unknown])[] = [
    ["two keys", { "\u0000": ["int", "1"], more: 1 }],
    ["no column", { "\u0000": 1 }],
    ["an unknown one", { "\u0000": ["zip", "1"] }],
    ["no numbers", { "\u0000": ["int", "1 x!"] }],
    ["more rows than there may be", { "\u0000": ["int", `0*${maxRows} 1`] }],
    ["a digit that is none", { "\u0000": ["hex", 3, "A*"] }],
    ["half of three digits", { "\u0000": ["hex", 3, "AAA"] }],
    ["fewer digits than its length", { "\u0000": ["hex", 4, "AB"] }],
    ["digits too short to be counted", { "\u0000": ["hex", 1, "AA"] }],
    ["more in common than there is", { "\u0000": ["text", " ", "0a 2b"] }],
    ["a strange separator", { "\u0000": ["text", "", "0a"] }],
    ["a place that is none", { "\u0000": ["few", ["a"], "0 1"] }],
    [
      "columns of two lengths",
      {
        "\u0000": [
          "tuples",
          [
            ["int", "1"],
            ["int", "1 1"],
          ],
        ],
      },
    ],
    ["a shape that is none", { "\u0000": ["rows", ["a"], [[0]], "1", [["int", "1"]]] }],
    ["a key that is none", { "\u0000": ["rows", ["a"], [[1]], "0", [["int", "1"]]] }],
    ["a column too short", { "\u0000": ["rows", ["a"], [[0]], "0 0", [["int", "1"]]] }],
    ["a column too long", { "\u0000": ["rows", ["a"], [[0]], "0", [["int", "1 1"]]] }],
    [
      "a column too many",
      {
        "\u0000": [
          "rows",
          ["a"],
          [[0]],
          "0",
          [
            ["int", "1"],
            ["int", "1"],
          ],
        ],
      },
    ],
  ];

  test.each(broken)("with %s is nothing", (_, wire) => {
    expect(unpackRows({ list: [wire] })).toBeUndefined();
  });

  test("that names a repeat which is not there is nothing", () => {
    expect(unpackRepeats({ a: ["\u0000=1"] }, ["x"])).toBeUndefined();
    expect(unpackRepeats("\u0000=x", ["x"])).toBeUndefined();
    expect(readRepeats(["a", "\u0000=1"])).toBeUndefined();
    expect(readRepeats({})).toBeUndefined();
  });
});

describe("a column", () => {
  test("takes what it can give back, and nothing else", () => {
    const ints = [5, 5, 5, 9, -1, 0, Number.MAX_SAFE_INTEGER];
    expect(unpackInts(packInts(ints))).toEqual(ints);
    expect(packInts([0.5])).toBeUndefined();
    expect(packInts([-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER])).toBeUndefined();
    for (const hex of [
      ["000"],
      ["ffff", "0000"],
      ["abc", "def"],
      ["0123456789abcdef", "f".repeat(16)],
    ])
      expect(unpackHex(...(packHex(hex) ?? [0, ""]))).toEqual(hex);
    expect(packHex(["ab", "abc"])).toBeUndefined();
    expect(packHex(["ABC"])).toBeUndefined();
    expect(packHex(["ab", "cd"])).toBeUndefined();
    expect(unpackTexts(...(packTexts(["a b", "a c", ""]) ?? ["", ""]))).toEqual(["a b", "a c", ""]);
    expect(packTexts([" |~^\u007f"])).toBeUndefined();
    // The first half of each character is the same.
    const faces = ["😀", "😁", "😂", "😃", "\ud83d"].map((face) => `they all look alike ${face}`);
    expect(packRows(faces)).toEqual({ "\u0000": ["text", "|", expect.any(String)] });
    expect(whole(faces)).toEqual(faces);
  });
});
