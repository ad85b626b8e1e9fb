import { freezeWorkers } from "./freezes.js";
import { windows } from "./moment.js";
import type { Random } from "./random.js";
import { killServers } from "./server-kills.js";
import type { Trial } from "./trial.js";
import { killWorkers, type Target } from "./worker-kills.js";

export interface PlannedTrial {
  readonly name: string;
  readonly part: "worker" | "server";
  /** Scripted turns it may use. */
  readonly turns: number;
  readonly attack: (trial: Trial) => Promise<void>;
}

/** Trials of one lane share a server and a worker; lanes run at once. */
export type Lane = readonly PlannedTrial[];

const serverTargets: readonly Target[] = [
  "model running, no token yet",
  "streaming",
  "tool running",
];

/** Each window once and two random moments, one server kill, one freeze. */
export function planShort(random: Random): Lane[] {
  const targets: Target[] = [...random.shuffle(windows), "random", "random"];
  return [
    [killing("workers killed, 1", targets.slice(0, 4), 3)],
    [killing("workers killed, 2", targets.slice(4), 3)],
    [
      freezing("worker frozen", [6_000]),
      serverKilling("server killed", [random.pick(serverTargets)], 1),
    ],
  ];
}

/** Twenty kills of the worker, two in each window and ten random; five of the server; three freezes. */
export function planFull(random: Random): Lane[] {
  const random10 = Array.from({ length: 10 }, (): Target => "random");
  const targets = random.shuffle<Target>([...windows, ...windows, ...random10]);
  return [
    [
      killing("workers killed, 1", targets.slice(0, 5), 4),
      killing("workers killed, 2", targets.slice(5, 10), 4),
      freezing("worker frozen, shortly", [6_000]),
    ],
    [
      killing("workers killed, 3", targets.slice(10, 15), 4),
      killing("workers killed, 4", targets.slice(15), 4),
      freezing("worker frozen, missed by the server", [14_000, 6_000]),
    ],
    [
      serverKilling(
        "server killed, 1",
        [...random.shuffle(serverTargets).slice(0, 2), "random"],
        3,
      ),
      serverKilling("server killed, 2", ["tool running", "random"], 3),
    ],
  ];
}

function killing(name: string, plan: readonly Target[], turns: number): PlannedTrial {
  return { name, part: "worker", turns, attack: (trial) => killWorkers(trial, plan) };
}

function freezing(name: string, plan: readonly number[]): PlannedTrial {
  return { name, part: "worker", turns: 2, attack: (trial) => freezeWorkers(trial, plan) };
}

function serverKilling(name: string, plan: readonly Target[], turns: number): PlannedTrial {
  return { name, part: "server", turns, attack: (trial) => killServers(trial, plan) };
}
