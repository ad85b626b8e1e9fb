import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../src/domain/canonical.js";
import { checkLossless, deepFreezeCopy } from "../../src/domain/lossless.js";

class Point {
  x = 1;
}
class Stack extends Array {}

function cycle(): unknown {
  const inner: Record<string, unknown> = {};
  inner["up"] = [inner];
  return { inner };
}

function nested(depth: number): unknown {
  let value: unknown = "end";
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { k: value };
  return value;
}

const hidden = Object.defineProperty({}, "secret", { value: 1, enumerable: false });
const sparse: unknown[] = ["first"];
sparse[2] = "third";
const labelled = Object.assign([1], { label: "x" });

const lossy: readonly (readonly [string, unknown, string])[] = [
  ["undefined itself", undefined, "$ is undefined"],
  ["undefined in an array", { list: ["a", undefined] }, "$.list[1] is undefined"],
  ["NaN", { a: { b: Number.NaN } }, "$.a.b is NaN"],
  ["Infinity", [Infinity], "$[0] is Infinity"],
  ["negative infinity", [-Infinity], "$[0] is -Infinity"],
  ["negative zero", { n: -0 }, "$.n is -0"],
  ["a bigint", { n: 1n }, "$.n is a bigint"],
  ["a function", { run: () => 1 }, "$.run is a function"],
  ["a symbol", [Symbol("s")], "$[0] is a symbol"],
  ["a cycle", cycle(), "$.inner.up[0] is a cycle"],
  ["a map", { m: new Map([["a", 1]]) }, "$.m is a Map"],
  ["a set", new Set([1]), "$ is a Set"],
  ["a date", [new Date(0)], "$[0] is a Date"],
  ["a regular expression", [/x/u], "$[0] is a RegExp"],
  ["bytes", new Uint8Array(2), "$ is a Uint8Array"],
  ["a boxed string", Object("text"), "$ is a String"],
  ["an instance of a class", { p: new Point() }, "$.p is a Point"],
  ["an object that inherits", Object.create({ a: 1 }), "$ is an object that inherits"],
  ["an instance of an array class", Stack.of(1), "$ is a Stack"],
  ["a hole", sparse, "$[1] is a hole"],
  ["an array with extra keys", labelled, "$ is an array with extra keys"],
  ["a symbol key", { [Symbol("s")]: 1 }, "$ has symbol or non-enumerable keys"],
  ["a key that is not enumerable", hidden, "$ has symbol or non-enumerable keys"],
  ["a value under a key that is no name", { "odd key": { "": NaN } }, '$["odd key"][""] is NaN'],
  [
    "nesting deeper than 1,000",
    nested(1_001),
    `$${"[0].k".repeat(500)} is nested deeper than 1000`,
  ],
];

describe("what would not survive JSON", () => {
  it.each(lossy)("names the place and the reason: %s", (_, value, message) => {
    expect(checkLossless(value)).toBe(message);
  });

  it("refuses undefined under a key, or leaves it out where that is asked for", () => {
    expect(checkLossless({ a: 1, b: undefined })).toBe("$.b is undefined");
    expect(checkLossless({ a: 1, b: undefined }, { omitUndefined: true })).toBeUndefined();
    expect(checkLossless([{ b: [undefined] }], { omitUndefined: true })).toBe(
      "$[0].b[0] is undefined",
    );
  });

  it("accepts values shared by two places, objects without a prototype and lone surrogates", () => {
    const shared = { a: [1] };
    const bare = Object.assign(Object.create(null), { k: 1 });
    for (const value of [
      [shared, shared],
      bare,
      "\ud800",
      nested(1_000),
      JSON.parse('{"__proto__":[1]}'),
    ]) {
      expect(checkLossless(value)).toBeUndefined();
    }
  });

  it("accepts every JSON value, which then comes back equal", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const plain: unknown = JSON.parse(JSON.stringify(value));
        expect(checkLossless(plain)).toBeUndefined();
      }),
    );
  });

  it("accepts a value of any kind only if JSON gives it back identical", () => {
    fc.assert(
      fc.property(anything, (value) => {
        if (checkLossless(value) !== undefined) return;
        const back: unknown = JSON.parse(JSON.stringify(value));
        expect(back).toStrictEqual(normal(value));
      }),
      { numRuns: 1_000 },
    );
  });

  it("finds one bad value wherever it is planted", () => {
    const bad = fc.constantFrom<readonly [unknown, string]>(
      [undefined, "undefined"],
      [Number.NaN, "NaN"],
      [-0, "-0"],
      [1n, "a bigint"],
      [new Map(), "a Map"],
    );
    const keys = fc.array(fc.oneof(fc.nat(3), fc.string({ maxLength: 3 })), { maxLength: 5 });
    fc.assert(
      fc.property(keys, bad, (path, [value, reason]) => {
        let root: unknown = value;
        for (const key of path.toReversed()) {
          root =
            typeof key === "number"
              ? [...Array.from({ length: key }, () => 0), root]
              : ownKey(key, root);
        }
        const place = path.map(shown).join("");
        expect(checkLossless(root)).toBe(`$${place} is ${reason}`);
      }),
    );
  });
});

describe("the frozen copy", () => {
  it("is equal, shares nothing with the original and is frozen all the way down", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const original: unknown = JSON.parse(JSON.stringify(value));
        const copied = deepFreezeCopy(original);
        expect(copied).toStrictEqual(original);
        expectDetached(original, copied);
      }),
    );
  });

  it("does not follow later changes of the original", () => {
    const todos = [{ content: "a" }];
    const copied = deepFreezeCopy({ todos });
    todos[0]!.content = "changed";
    todos.push({ content: "b" });
    expect(copied).toEqual({ todos: [{ content: "a" }] });
    expect(() => (copied.todos as unknown[]).push(1)).toThrow(TypeError);
  });

  it("keeps a key named __proto__ as a key", () => {
    const copied = deepFreezeCopy(JSON.parse('{"__proto__":{"a":1}}'));
    expect(Object.keys(copied)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(copied)).toBe(Object.prototype);
    expect(JSON.stringify(copied)).toBe('{"__proto__":{"a":1}}');
  });

  it.each(lossy)("refuses what would not survive: %s", (_, value, message) => {
    expect(() => deepFreezeCopy(value)).toThrow(new TypeError(`not lossless JSON: ${message}`));
  });
});

describe("canonical JSON", () => {
  it("sorts keys by UTF-16 code units, not by number or by code point", () => {
    const value = { b: 1, "10": 2, "9": 3, a: [], Z: {}, "\uffff": 4, "😀": 5, "": null };
    expect(canonicalJson(value)).toBe(
      `{"":null,"10":2,"9":3,"Z":{},"a":[],"b":1,"😀":5,"\uffff":4}`,
    );
  });

  it("leaves out undefined under a key", () => {
    expect(canonicalJson({ a: undefined, b: { c: undefined, d: true } })).toBe('{"b":{"d":true}}');
  });

  it("writes scalars and escapes as JSON does", () => {
    for (const value of [null, true, false, 0, 1e21, 5e-324, 0.1, 'q"\\\u0000\u2028', "\ud800"]) {
      expect(canonicalJson(value)).toBe(JSON.stringify(value));
    }
  });

  it.each(lossy)("refuses what would not survive: %s", (_, value, message) => {
    expect(() => canonicalJson(value)).toThrow(new TypeError(`not lossless JSON: ${message}`));
  });

  it("reads back as the same value and is one text for every order of keys", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.infiniteStream(fc.nat()), (value, dice) => {
        const plain: unknown = JSON.parse(JSON.stringify(value));
        const text = canonicalJson(plain);
        expect(JSON.parse(text)).toStrictEqual(plain);
        expect(canonicalJson(shuffled(plain, dice))).toBe(text);
        expect(text).toBe(byDefinition(plain));
      }),
    );
  });
});

const anything = fc.anything({
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withSparseArray: true,
  withTypedArray: true,
});

/** Objects without a prototype come back with one: the only difference JSON makes to an accepted value. */
function normal(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(normal);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, normal(inner)]));
}

function ownKey(key: string, value: unknown): object {
  return Object.fromEntries([[key, value]]);
}

function shown(key: number | string): string {
  if (typeof key === "number") return `[${key}]`;
  return /^[A-Za-z_$][A-Za-z0-9_$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

function expectDetached(original: unknown, copied: unknown): void {
  if (typeof original !== "object" || original === null) return;
  expect(copied).not.toBe(original);
  expect(Object.isFrozen(copied)).toBe(true);
  for (const [key, inner] of Object.entries(original)) {
    expectDetached(inner, Object.getOwnPropertyDescriptor(copied, key)?.value);
  }
}

function shuffled(value: unknown, dice: Iterator<number>): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => shuffled(item, dice));
  const ranked = Object.entries(value).map((entry) => ({ entry, rank: Number(dice.next().value) }));
  ranked.sort((a, b) => a.rank - b.rank);
  return Object.fromEntries(ranked.map(({ entry: [key, inner] }) => [key, shuffled(inner, dice)]));
}

/** Slow and plain: code units compared one by one. */
function byDefinition(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(byDefinition).join(",")}]`;
  const entries = Object.entries(value);
  entries.sort(([a], [b]) => compareUnits(a, b));
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${byDefinition(inner)}`).join(",")}}`;
}

function compareUnits(a: string, b: string): number {
  for (let index = 0; index < Math.min(a.length, b.length); index += 1) {
    const difference = a.charCodeAt(index) - b.charCodeAt(index);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
