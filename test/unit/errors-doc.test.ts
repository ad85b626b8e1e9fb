import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { errorCodes } from "../../src/contracts/errors.js";

const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
const sections = page
  .split(/^## /m)
  .slice(1)
  .map((section) => {
    const [heading, ...lines] = section.split("\n");
    return { heading, body: lines.join("\n").trim() };
  });

test("docs/errors.md has exactly one heading for each code, in the order of the list, and no other", () => {
  expect(sections.map((section) => section.heading)).toEqual([...errorCodes]);
});

test("the codes are listed in alphabetical order, each once", () => {
  expect([...new Set(errorCodes)].toSorted()).toEqual([...errorCodes]);
});

test.each(sections)("$heading is explained in two to five sentences", ({ body }) => {
  const sentences = body.match(/[^.!?]+[.!?](?=\s|$)/g) ?? [];
  expect(sentences.length).toBeGreaterThanOrEqual(2);
  expect(sentences.length).toBeLessThanOrEqual(5);
});
