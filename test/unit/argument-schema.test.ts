import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/contracts/header.js";
import {
  checkArguments,
  invalidArguments,
  parseArguments,
} from "../../src/domain/argument-schema.js";

const everyType: JsonObject = {
  type: "object",
  properties: {
    text: { type: "string" },
    count: { type: "integer" },
    ratio: { type: "number" },
    flag: { type: "boolean" },
    list: { type: "array", items: { type: "string" } },
    point: {
      type: "object",
      properties: { x: { type: "number" }, note: { type: ["string", "null"] } },
      required: ["x"],
      additionalProperties: false,
    },
    mode: { type: "string", enum: ["fast", "slow"] },
  },
  required: ["text"],
};

const good = {
  text: "a",
  count: 3,
  ratio: 0.5,
  flag: false,
  list: ["a"],
  point: { x: 1, note: null },
  mode: "slow",
};

describe("parsing the arguments of a call", () => {
  it("takes nothing, or only white space, as no arguments", () => {
    expect(parseArguments("")).toEqual({});
    expect(parseArguments(" \n")).toEqual({});
  });

  it("returns what the JSON says", () => {
    expect(parseArguments('{"a":[1,null]}')).toEqual({ a: [1, null] });
  });

  it("leaves invalid JSON as the string, which then fails the schema", () => {
    expect(parseArguments('{"a":')).toBe('{"a":');
    expect(checkArguments(everyType, parseArguments('{"a":'))).toEqual([
      "arguments must be an object",
    ]);
  });
});

describe("checking arguments against a schema", () => {
  it("finds nothing wrong with arguments of the declared types", () => {
    expect(checkArguments(everyType, good)).toEqual([]);
  });

  it.each([
    ["text", 1, '"text" must be a string'],
    ["count", 1.5, '"count" must be an integer'],
    ["ratio", "1", '"ratio" must be a number'],
    ["flag", "true", '"flag" must be a boolean'],
    ["list", { 0: "a" }, '"list" must be an array'],
    ["list", ["a", 2], '"list[1]" must be a string'],
    ["point", [1], '"point" must be an object'],
    ["point", null, '"point" must be an object'],
    ["point", { note: "n" }, 'missing required property "point.x"'],
    ["point", { x: 1, note: 2 }, '"point.note" must be a string or null'],
    ["point", { x: 1, y: 2 }, '"point.y" is not a declared property (additionalProperties: false)'],
    ["mode", "medium", '"mode" must be one of ["fast","slow"]'],
    ["mode", 1, '"mode" must be one of ["fast","slow"]'],
  ])("names %s = %j and what it must be", (key, value, violation) => {
    expect(checkArguments(everyType, { ...good, [key]: value })).toEqual([violation]);
  });

  it("lists every violation, in the order of the schema", () => {
    expect(checkArguments(everyType, { mode: 1, count: "3", point: {} })).toEqual([
      'missing required property "text"',
      '"count" must be an integer',
      'missing required property "point.x"',
      '"mode" must be one of ["fast","slow"]',
    ]);
  });

  it("tolerates undeclared arguments at the top, even under additionalProperties: false", () => {
    const closed = { ...everyType, additionalProperties: false };
    expect(checkArguments(closed, { ...good, reason: "because" })).toEqual([]);
  });

  it("does not take inherited names for declared or given ones", () => {
    const schema: JsonObject = {
      type: "object",
      properties: {
        valueOf: { type: "string" },
        inner: { type: "object", properties: {}, additionalProperties: false },
      },
      required: ["toString"],
    };
    expect(checkArguments(schema, JSON.parse('{"inner":{"constructor":1,"__proto__":2}}'))).toEqual(
      [
        'missing required property "toString"',
        '"inner.constructor" is not a declared property (additionalProperties: false)',
        '"inner.__proto__" is not a declared property (additionalProperties: false)',
      ],
    );
  });

  it("compares choices that are not strings by their value", () => {
    const schema: JsonObject = { type: "object", properties: { v: { enum: [1, null, [2]] } } };
    expect(checkArguments(schema, { v: [2] })).toEqual([]);
    expect(checkArguments(schema, { v: null })).toEqual([]);
    expect(checkArguments(schema, { v: "1" })).toEqual(['"v" must be one of [1,null,[2]]']);
  });

  it("stops at 100 violations and shows no more than about 4,000 characters of them", () => {
    const schema: JsonObject = {
      type: "object",
      properties: { list: { type: "array", items: { type: "string" } } },
    };
    const violations = checkArguments(schema, { list: Array.from({ length: 5_000 }, () => 1) });
    expect(violations).toHaveLength(100);
    const long = invalidArguments(Array.from({ length: 100 }, (_, n) => `${"x".repeat(95)}${n}`));
    expect(long).toMatch(/; and 59 more$/u);
    expect(long.length).toBeLessThan(4_200);
    expect(invalidArguments(["y".repeat(9_000), "z"]).length).toBeLessThan(4_100);
  });

  it("joins violations by semicolons", () => {
    expect(invalidArguments(["one", "two"])).toBe("invalid arguments: one; two");
  });

  it("finds exactly the one value that was replaced by one of another type", () => {
    const sample = fc.record({
      key: fc.constantFrom("text", "count", "ratio", "flag", "list", "point"),
      wrong: fc.jsonValue(),
    });
    fc.assert(
      fc.property(sample, ({ key, wrong }) => {
        fc.pre(!fits(key, wrong));
        const violations = checkArguments(everyType, { ...good, [key]: wrong });
        expect(violations.length).toBeGreaterThan(0);
        for (const violation of violations) expect(violation).toContain(`"${key}`);
      }),
    );
  });
});

/** The schema above, by hand. */
function fits(key: string, value: unknown): boolean {
  switch (key) {
    case "text":
      return typeof value === "string";
    case "count":
      return Number.isInteger(value);
    case "ratio":
      return typeof value === "number";
    case "flag":
      return typeof value === "boolean";
    case "list":
      return Array.isArray(value) && value.every((item) => typeof item === "string");
    default: {
      if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
      const { x, note, ...rest } = value as Record<string, unknown>;
      const noteFits = !Object.hasOwn(value, "note") || note === null || typeof note === "string";
      return typeof x === "number" && noteFits && Object.keys(rest).length === 0;
    }
  }
}
