import type { SessionConfig } from "../../../src/contracts/config.js";
import type { SendMode } from "../../../src/contracts/session.js";
import type { TodoItem } from "../../../src/contracts/todo.js";
import { createRandom, type Random } from "../random.js";
import type { ScenarioInput } from "../../support/scenario-input.js";
import { planScenario, planTodos } from "./scenario.js";

export interface Message {
  readonly id: string;
  readonly mode: SendMode;
  readonly content: string;
  /** It does not tell one message from another, so a repeat with another one reaches the session as an update of its own. */
  readonly timeZone?: string;
}

/** What is done to a session from outside; `by` signal: nobody waits for a verdict. */
export type WalkOp =
  | { readonly kind: "send"; readonly by: By; readonly message: Message }
  | { readonly kind: "batch"; readonly messages: readonly Message[] }
  | {
      readonly kind: "todos";
      readonly by: By;
      readonly opId: string;
      readonly todos: readonly TodoItem[];
    }
  | { readonly kind: "start-job"; readonly opId: string; readonly command: string }
  | { readonly kind: "kill-job"; readonly opId: string; readonly job: string }
  | {
      readonly kind: "remind";
      readonly by: By;
      readonly requestId: string;
      readonly rule: { readonly in: number } | { readonly every: number };
    }
  | {
      readonly kind: "unremind";
      readonly by: By;
      readonly requestId: string;
      readonly reminder: string;
    }
  | { readonly kind: "configure"; readonly config: Partial<SessionConfig> }
  | { readonly kind: "compact"; readonly opId: string }
  | { readonly kind: "suspend" | "resume" | "interrupt" | "cancel" | "roll-over" | "rest" };

type By = "update" | "signal";

export interface Walk {
  readonly seed: number;
  /** Bound to the host of the walk: it has tools of the world, and jobs. */
  readonly hosted: boolean;
  readonly config: Partial<SessionConfig>;
  readonly scenario: ScenarioInput;
  /** Each after a pause of so many ms. */
  readonly ops: readonly { readonly afterMs: number; readonly op: WalkOp }[];
}

/** The walk of a seed; the same seed makes the same walk. */
export function planWalk(seed: number): Walk {
  const random = createRandom(seed).fork("walk");
  const chance = (percent: number): boolean => random.between(1, 100) <= percent;
  const hosted = chance(70);
  const ops = new Ops(random, hosted);
  return {
    seed,
    hosted,
    config: {
      worldTools: hosted,
      allowParallelInProgress: chance(50),
      schedule: true,
      // The same budget as far as a walk goes: whether a notice may wake is decided by it.
      jobs: { maxConcurrentJobsPerOwner: random.between(2, 6), heartbeatTimeoutMs: 6_000 },
      rollOver: { events: chance(25) ? 1 : random.between(1, 200), minIntervalMs: 0 },
      ...(chance(20) ? { timeContext: { refreshIntervalMs: random.pick([0, 500]) } } : {}),
    },
    scenario: planScenario(random, hosted),
    ops: Array.from({ length: random.between(10, 16) }, () => ({
      afterMs: random.pick([0, 0, random.between(0, 100), random.between(0, 600)]),
      op: ops.next(),
    })),
  };
}

/** How often an operation is drawn, of all weights together. */
const weights: readonly (readonly [weight: number, kind: keyof Draws])[] = [
  [24, "send"],
  [6, "batch"],
  [10, "sendAgain"],
  [5, "sendOther"],
  [3, "sendBad"],
  [9, "todos"],
  [3, "todosAgain"],
  [9, "startJob"],
  [2, "startJobAgain"],
  [6, "killJob"],
  [8, "remind"],
  [2, "remindAgain"],
  [4, "unremind"],
  [5, "suspend"],
  [4, "resume"],
  [5, "interrupt"],
  [3, "cancel"],
  [5, "configure"],
  [4, "compact"],
  [6, "rollOver"],
  [7, "rest"],
];

type Draws = Omit<Ops, "next">;

class Ops {
  readonly #random: Random;
  readonly #hosted: boolean;
  readonly #sent: Message[] = [];
  readonly #todos: Extract<WalkOp, { kind: "todos" }>[] = [];
  readonly #jobs: Extract<WalkOp, { kind: "start-job" }>[] = [];
  readonly #reminders: Extract<WalkOp, { kind: "remind" }>[] = [];
  #count = 0;

  constructor(random: Random, hosted: boolean) {
    this.#random = random;
    this.#hosted = hosted;
  }

  next(): WalkOp {
    const total = weights.reduce((sum, [weight]) => sum + weight, 0);
    let at = this.#random.between(1, total);
    for (const [weight, kind] of weights) {
      at -= weight;
      if (at <= 0) return this[kind]();
    }
    return this.rest();
  }

  send(): WalkOp {
    return { kind: "send", by: this.#by(), message: this.#message() };
  }

  /** A signal that carries several, some of them known already or known as another. */
  batch(): WalkOp {
    const messages = Array.from({ length: this.#random.between(2, 5) }, () =>
      this.#random.between(1, 4) === 1 ? this.#known() : this.#message(),
    );
    return { kind: "batch", messages };
  }

  sendAgain(): WalkOp {
    const known = this.#known();
    const timeZone = this.#random.pick(["", "UTC", "Europe/Berlin"]);
    const message = timeZone === "" ? known : { ...known, timeZone };
    return { kind: "send", by: this.#by(), message };
  }

  sendOther(): WalkOp {
    const known = this.#known();
    return {
      kind: "send",
      by: this.#by(),
      message: { ...known, content: `not ${known.content}` },
    };
  }

  sendBad(): WalkOp {
    const message = this.#random.pick<Message>([
      { id: `bad-${this.#number()}`, mode: "followup", content: "   " },
      { id: `job/bad-${this.#number()}`, mode: "steer", content: "mine" },
    ]);
    return { kind: "send", by: "signal", message };
  }

  todos(): WalkOp {
    const op = {
      kind: "todos",
      by: this.#by(),
      opId: `todo-${this.#number()}`,
      todos: planTodos(this.#random),
    } as const;
    this.#todos.push(op);
    return op;
  }

  todosAgain(): WalkOp {
    const first = this.#pick(this.#todos);
    return first === undefined ? this.todos() : { ...first, by: this.#by() };
  }

  startJob(): WalkOp {
    if (!this.#hosted) return this.send();
    const opId = `start-${this.#number()}`;
    const rest = this.#random.pick(["true", "sleep 0.4; echo out", "exit 3", "exec sleep 300"]);
    const op = { kind: "start-job", opId, command: `echo ${opId} >> ran; ${rest}` } as const;
    this.#jobs.push(op);
    return op;
  }

  startJobAgain(): WalkOp {
    return this.#pick(this.#jobs) ?? this.startJob();
  }

  killJob(): WalkOp {
    if (!this.#hosted) return this.sendAgain();
    const job = `bash-${this.#random.between(1, 5)}`;
    return { kind: "kill-job", opId: `kill-${this.#number()}`, job };
  }

  remind(): WalkOp {
    const random = this.#random;
    const rule = random.between(1, 4) === 1 ? { every: 300 } : { in: random.between(1, 3) };
    const op = {
      kind: "remind",
      by: this.#by(),
      requestId: `remind-${this.#number()}`,
      rule,
    } as const;
    this.#reminders.push(op);
    return op;
  }

  remindAgain(): WalkOp {
    const first = this.#pick(this.#reminders);
    return first === undefined ? this.remind() : { ...first, by: this.#by() };
  }

  unremind(): WalkOp {
    const requestId = `unremind-${this.#number()}`;
    const reminder = `schedule-${this.#random.between(1, 4)}`;
    return { kind: "unremind", by: this.#by(), requestId, reminder };
  }

  configure(): WalkOp {
    const random = this.#random;
    const config = random.pick<Partial<SessionConfig>>([
      { system: `be brief ${this.#number()}` },
      { deny: random.pick([[], ["todo_write"], ["bash"]]) },
      { allowParallelInProgress: random.pick([true, false]) },
      { rollOver: { events: random.between(1, 200), minIntervalMs: 0 } },
      { timeContext: { refreshIntervalMs: 0 } },
    ]);
    return { kind: "configure", config };
  }

  compact(): WalkOp {
    return { kind: "compact", opId: `compact-${this.#number()}` };
  }

  suspend(): WalkOp {
    return { kind: "suspend" };
  }

  resume(): WalkOp {
    return { kind: "resume" };
  }

  interrupt(): WalkOp {
    return { kind: "interrupt" };
  }

  cancel(): WalkOp {
    return { kind: "cancel" };
  }

  rollOver(): WalkOp {
    return { kind: "roll-over" };
  }

  rest(): WalkOp {
    return { kind: "rest" };
  }

  #message(): Message {
    const number = this.#number();
    const mode = this.#random.pick<SendMode>(["followup", "followup", "steer", "inject"]);
    const long = this.#random.between(1, 12) === 1 ? ` ${"word ".repeat(2_500)}` : "";
    const message = { id: `m-${number}`, mode, content: `message ${number}${long}` };
    this.#sent.push(message);
    return message;
  }

  /** One that was sent before, in the same words. */
  #known(): Message {
    return this.#pick(this.#sent) ?? this.#message();
  }

  #by(): By {
    return this.#random.pick(["update", "signal"]);
  }

  #number(): number {
    return (this.#count += 1);
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items.length === 0 ? undefined : this.#random.pick(items);
  }
}
