import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  createStreamedPartDecoder,
  encodeStreamedPart,
  type StreamedPart,
} from "../../src/store/model-stream.js";

const parts: fc.Arbitrary<StreamedPart> = fc.oneof(
  fc.record({ type: fc.constant("text" as const), text: fc.string({ unit: "grapheme" }) }),
  fc.record({ type: fc.constant("reasoning" as const), text: fc.string({ unit: "binary" }) }),
  fc.record({
    type: fc.constant("tool-call" as const),
    callId: fc.string(),
    name: fc.string(),
    arguments: fc.json(),
  }),
);

describe("the side stream of a model's reply", () => {
  test("gives the parts back when it is cut at any bytes", () => {
    fc.assert(
      fc.property(fc.array(parts), fc.array(fc.nat(40)), (given, cuts) => {
        const bytes = Buffer.concat(given.map((part) => encodeStreamedPart(part)));
        const decoder = createStreamedPartDecoder();
        const decoded: StreamedPart[] = [];
        let start = 0;
        for (const cut of cuts) {
          decoded.push(...decoder.push(bytes.subarray(start, start + cut)));
          start += cut;
        }
        decoded.push(...decoder.push(bytes.subarray(start)));
        expect(decoded).toEqual(given);
      }),
    );
  });

  test("is one line of JSON a part", () => {
    const bytes = encodeStreamedPart({ type: "text", text: "two\nlines" });
    expect(Buffer.from(bytes).toString("utf8")).toBe('{"type":"text","text":"two\\nlines"}\n');
  });

  test("keeps an unfinished line, also when the reader reuses its buffer", () => {
    const bytes = Buffer.from(encodeStreamedPart({ type: "text", text: "日本" }));
    const decoder = createStreamedPartDecoder();
    const head = Buffer.from(bytes.subarray(0, 25));
    expect(decoder.push(head)).toEqual([]);
    head.fill(0);
    expect(decoder.push(bytes.subarray(25))).toEqual([{ type: "text", text: "日本" }]);
  });

  test("skips lines of a kind it does not know and lines that are damaged", () => {
    const lines = [
      '{"type":"image","text":"x"}',
      "{",
      "null",
      '{"type":"text"}',
      '{"type":"tool-call","callId":"a"}',
      "",
    ];
    const bytes = Buffer.from([...lines, '{"type":"text","text":"kept"}', ""].join("\n"));
    expect(createStreamedPartDecoder().push(bytes)).toEqual([{ type: "text", text: "kept" }]);
  });
});
