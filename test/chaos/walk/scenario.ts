import { todoStatuses, type TodoItem } from "../../../src/contracts/todo.js";
import type { Random } from "../random.js";
import type { ScenarioInput } from "../../support/scenario-input.js";

type Step = ScenarioInput["turns"][number]["steps"][number];
type Call = NonNullable<Step["calls"]>[number];

/** What the model of a walk does: turns of tools in every combination, then as many plain answers as are wanted. */
export function planScenario(random: Random, hosted: boolean): ScenarioInput {
  const pressed = random.between(1, 4) === 1;
  return {
    // So small that a long message or result is more than the model can be shown.
    ...(pressed ? { contextWindow: hosted ? 14_000 : 5_000 } : {}),
    summary: { text: "a summary of what was said" },
    turns: [
      ...Array.from({ length: 40 }, () => ({
        steps: [
          ...Array.from({ length: random.pick([0, 0, 1, 1, 2, 3]) }, () =>
            toolStep(random, hosted),
          ),
          // What is sent in at the end of a turn costs it a step more.
          { ...answer(random), repeat: 200 },
        ],
      })),
      { repeat: 1_000, steps: [{ text: "done", repeat: 200 }] },
    ],
  };
}

function answer(random: Random): Step {
  const pace = { firstDelayMs: random.pick([0, 0, random.between(0, 150)]) };
  const what = random.between(1, 14);
  if (what === 1) return { ...pace, failures: [{ code: "AUTH" }] };
  if (what <= 3) return { ...pace, text: "late ${turn}", failures: [{ code: "SERVER" }] };
  if (what === 4) return { ...pace, text: "cut ${turn}", finish: "max-tokens" };
  return { ...pace, text: "answer ${turn}.${step}" };
}

function toolStep(random: Random, hosted: boolean): Step {
  const draw = hosted ? [...ownCalls, ...worldCalls] : ownCalls;
  return {
    firstDelayMs: random.pick([0, 0, random.between(0, 150)]),
    calls: Array.from({ length: random.pick([1, 1, 2, 3]) }, (_, index) =>
      random.pick(draw)(random, index),
    ),
  };
}

type Draw = (random: Random, index: number) => Call;

const todo: Draw = (random) => ({
  tool: "todo_write",
  args: { todos: planTodos(random).map(({ content, status }) => ({ content, status })) },
});

const ownCalls: readonly Draw[] = [
  todo,
  todo,
  (random) => ({
    tool: "schedule_create",
    args: { prompt: "look again ${turn}.${step}", after_seconds: random.between(1, 3) },
  }),
  (random) => ({ tool: "schedule_delete", args: { id: `schedule-${random.between(1, 4)}` } }),
  () => ({ tool: "schedule_list", args: {} }),
  () => ({ tool: "nothing", args: {} }),
];

/** Each command leaves a mark of its own: none may ever run twice. */
const bash = (script: string, index: number, more: Record<string, boolean> = {}): Call => ({
  tool: "bash",
  args: {
    command: `echo call-\${turn}-\${step}-${index} >> ran; ${script}`,
    description: "Work",
    ...more,
  },
});

const worldCalls: readonly Draw[] = [
  todo,
  (_, index) => bash("echo done", index),
  (_, index) => bash("yes abcdefghi | head -c 20000", index),
  (random, index) => bash(`sleep 0.${random.between(1, 4)}; exit 2`, index),
  (random, index) =>
    bash(random.pick(["true", "sleep 0.3; echo late", "exec sleep 300"]), index, {
      run_in_background: true,
    }),
  (random) => ({ tool: "job_output", args: { job_id: `bash-${random.between(1, 4)}` } }),
  (random) => ({
    tool: "job_output",
    args: {
      job_id: `bash-${random.between(1, 4)}`,
      wait: true,
      timeout_ms: random.between(50, 800),
    },
  }),
  (random) => ({ tool: "job_kill", args: { job_id: `bash-${random.between(1, 4)}` } }),
  () => ({ tool: "job_list", args: {} }),
  () => ({ tool: "read", args: { path: "ran" } }),
];

/** A list that may be refused: blank, twice the same, or more than one under way. */
export function planTodos(random: Random): readonly TodoItem[] {
  return Array.from({ length: random.between(0, 3) }, () => ({
    content: random.pick(["look", "think", "write", "test", " spaced ", "  "]),
    status: random.pick(todoStatuses),
  }));
}
