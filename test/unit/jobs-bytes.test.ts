import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeChunk, fit, headBytes, tailBytes } from "../../src/domain/job-bytes.js";

describe("cutting by bytes", () => {
  const anyText = fc.string({ unit: "binary", maxLength: 60 });

  it("takes the longest head and tail of whole characters, as an encoder counts them", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 0, max: 80 }), (text, limit) => {
        const points = Array.from(text);
        const longest = (parts: readonly string[], join: (count: number) => string) => {
          let best = "";
          for (let count = 0; count <= parts.length; count++) {
            const cut = join(count);
            if (Buffer.byteLength(cut) <= limit) best = cut;
          }
          return best;
        };
        expect(headBytes(text, limit)).toBe(longest(points, (n) => points.slice(0, n).join("")));
        expect(tailBytes(text, limit)).toBe(
          longest(points, (n) => points.slice(points.length - n).join("")),
        );
      }),
    );
  });

  it("a fitted text never exceeds its limit and is untouched when it fits", () => {
    fc.assert(
      fc.property(anyText, anyText, fc.integer({ min: 1, max: 120 }), (content, suffix, limit) => {
        const text = fit(content, suffix, limit, "\n[mark]");
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(limit);
        const fits = Buffer.byteLength(content + suffix) <= limit;
        expect(text === content + suffix || !fits).toBe(true);
      }),
    );
  });

  it("decodes a stream in pieces as it decodes it whole, never within a character", () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary", maxLength: 8 }).map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 5 }).map((array) => Buffer.from(array)),
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 8 }).map((pieces) => Buffer.concat(pieces)),
        fc.array(fc.nat(7), { maxLength: 40 }),
        (all, steps) => {
          let text = "";
          let at = 0;
          let end = 0;
          for (const step of steps) {
            end = Math.min(all.length, end + step);
            const chunk = decodeChunk(all.subarray(at, end), false);
            text += chunk.text;
            at += chunk.consumed;
          }
          expect(end - at).toBeLessThanOrEqual(3);
          text += decodeChunk(all.subarray(at), true).text;
          expect(text).toBe(new TextDecoder("utf-8", { ignoreBOM: true }).decode(all));
        },
      ),
    );
  });

  it("carries half a character over to the next read", () => {
    const all = Buffer.from("a界");
    expect(decodeChunk(all.subarray(0, 3), false)).toEqual({ text: "a", consumed: 1 });
    expect(decodeChunk(all.subarray(1), false)).toEqual({ text: "界", consumed: 3 });
    expect(decodeChunk(all.subarray(0, 3), true)).toEqual({ text: "a\u{fffd}", consumed: 3 });
  });
});
