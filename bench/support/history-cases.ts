import type { Workload } from "./workload.js";

const base: Omit<Workload, "name"> = {
  steps: 1,
  text: 200,
  tool: "none",
  callsPerStep: 1,
  argument: 0,
  result: 5_000,
  transcript: [],
};

function repeated(kind: string, load: Partial<Workload>): readonly Workload[] {
  return [10, 100, 300].map((steps) => ({ ...base, ...load, steps, name: `${steps} × ${kind}` }));
}

/** The turns whose history `bench:history` measures (design §5). */
export const historyCases: readonly Workload[] = [
  { ...base, name: "text only" },
  ...repeated("world tool 5 KB", { tool: "produce" }),
  ...repeated("state tool", { tool: "todo_write" }),
  {
    ...base,
    name: "100 × world tool 5 KB on 200,000 tokens",
    tool: "produce",
    steps: 100,
    transcript: [200_000, 200_000, 200_000, 200_000],
  },
  {
    ...base,
    name: "30 × world tool, arguments 50 KB",
    tool: "produce",
    steps: 30,
    argument: 50_000,
    result: 200,
  },
  {
    ...base,
    name: "30 × world tool, arguments 2 KB",
    tool: "produce",
    steps: 30,
    argument: 1_950,
    result: 200,
  },
  {
    ...base,
    name: "10 × 10 world tools at once 5 KB",
    tool: "produce_at_once",
    callsPerStep: 10,
    steps: 10,
  },
];
