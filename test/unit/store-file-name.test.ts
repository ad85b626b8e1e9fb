import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareIds, fileNameOf, idOfFileName, isHashedName } from "../../src/store/file-name.js";

const ids = fc.oneof(
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.string({
    unit: fc.constantFrom(
      "a",
      "A",
      ".",
      "/",
      "+",
      "%",
      "~",
      "2",
      "f",
      "u",
      "\ud800",
      "\udc00",
      "é",
    ),
    maxLength: 300,
  }),
);

describe("file names of ids", () => {
  test("are safe, short and differ by more than case", () => {
    fc.assert(
      fc.property(ids, (id) => {
        const name = fileNameOf(id);
        expect(name).toMatch(/^[a-z0-9_%+-][a-z0-9_.%+~-]*$/);
        expect(name.length).toBeLessThanOrEqual(180);
      }),
    );
  });

  test("give the id back unless they are hashed", () => {
    fc.assert(
      fc.property(ids, (id) => {
        const name = fileNameOf(id);
        expect(idOfFileName(name)).toBe(isHashedName(name) ? undefined : id);
      }),
    );
  });

  test.each(["UPPER", "a b", "%2F", "%41x%", "%zz", "a~b", ".hidden", "%61", "é", ""])(
    "%j is no name of an id",
    (name) => {
      expect(idOfFileName(name)).toBeUndefined();
    },
  );

  test.each([
    ["job/bash-1/1", "job+bash-1+1"],
    ["spill/1.2.call-1.stdout", "spill+1.2.call-1.stdout"],
    ["..", "%2e."],
    ["Ab", "%41b"],
    ["é😀", "%c3%a9%f0%9f%98%80"],
    ["", "%"],
  ])("of %j is %j", (id, name) => {
    expect(fileNameOf(id)).toBe(name);
  });

  test("keep long ids apart that begin alike", () => {
    const names = ["x".repeat(1000), `${"x".repeat(999)}y`, "x".repeat(999)].map(fileNameOf);
    expect(new Set(names).size).toBe(3);
    expect(names.every((name) => isHashedName(name) && name.startsWith("xxx"))).toBe(true);
  });
});

test("ids are ordered like their UTF-8 bytes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
      expect(Math.sign(compareIds(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
    {
      examples: [
        ["\ufffd", "😀"],
        ["a", "ab"],
        ["", ""],
      ],
    },
  );
});
