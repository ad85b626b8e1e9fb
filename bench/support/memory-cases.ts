import type { Workload } from "./workload.js";

export interface MemoryCase {
  readonly load: Workload;
  /** How many workflows are cached at each sample; the first is the warm-up. */
  readonly counts: readonly number[];
}

const base: Workload = {
  name: "empty",
  steps: 0,
  text: 200,
  tool: "none",
  callsPerStep: 0,
  argument: 0,
  result: 0,
  transcript: [],
};

/** 25 steps of an answer with 19 calls and their results, between a question and a last answer. */
const long: Workload = {
  ...base,
  name: "500 messages",
  tool: "todo_write",
  steps: 25,
  callsPerStep: 19,
};

export const memoryCases: readonly MemoryCase[] = [
  { load: base, counts: [100, 200, 300, 400, 500] },
  { load: long, counts: [10, 20, 30, 40, 50] },
];

export const memoryLoads: readonly Workload[] = memoryCases.map(({ load }) => load);
