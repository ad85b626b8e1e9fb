import { isFields, type Fields } from "./reference-entry.js";

/** Lines that hold a run of `assistant/chunk` entries of one block (spec/harness §11), and the delta each stands for. */
const deltas: { readonly [row: string]: string } = {
  "text-chunks": "text-delta",
  "reasoning-chunks": "reasoning-delta",
  "tool-call-chunks": "tool-call-delta",
};

export function isChunkRow(line: Fields): boolean {
  return typeof line["type"] === "string" && Object.hasOwn(deltas, line["type"]);
}

/** The entries of a packed line, in order; undefined when it is damaged. */
export function unpackChunks(line: Fields): readonly Fields[] | undefined {
  const { type, seq0, time0, data } = line;
  if (!isCount(seq0) || !Number.isSafeInteger(time0) || !isFields(data)) return undefined;
  const { turn, step, index, dt, id, name } = data;
  const call = type === "tool-call-chunks";
  const pieces: unknown = call ? data["args"] : data["texts"];
  if (!isTexts(pieces) || pieces.length === 0) return undefined;
  if (!isIntegers(dt) || dt.length !== pieces.length - 1) return undefined;
  if (![turn, step, index].every((one) => typeof one === "number")) return undefined;
  if (call && typeof id !== "string") return undefined;
  let time = Number(time0);
  return pieces.map((piece, at) => {
    if (at > 0) time += dt[at - 1] ?? 0;
    const head = { type: deltas[String(type)], index };
    const chunk = call
      ? { ...head, id, ...(name === undefined ? {} : { name }), argumentsDelta: piece }
      : { ...head, text: piece };
    return { type: "assistant/chunk", seq: seq0 + at, time, data: { turn, step, chunk } };
  });
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isIntegers(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((one) => Number.isSafeInteger(one));
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
