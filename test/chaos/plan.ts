import { askFrozenCrowd } from "./crowd.js";
import { freezeWorkers } from "./freezes.js";
import { stormJobs, type Storm } from "./job-storm.js";
import { windows } from "./moment.js";
import type { Random } from "./random.js";
import { remindUnderBlows, type ReminderBlows } from "./reminder-blows.js";
import { killServers } from "./server-kills.js";
import type { Site } from "./site.js";
import { runTrial, type Trial, type TrialResult } from "./trial.js";
import { killWorkers, type Target } from "./worker-kills.js";

export const parts = ["worker", "server", "jobs", "reminders"] as const;
export type Part = (typeof parts)[number];

export interface PlannedTrial {
  readonly name: string;
  readonly part: Part;
  readonly run: (site: Site, random: Random, say: (line: string) => void) => Promise<TrialResult>;
}

/** Trials of one lane share a server and a worker; lanes run at once. */
export type Lane = readonly PlannedTrial[];

const serverTargets: readonly Target[] = [
  "model running, no token yet",
  "streaming",
  "tool running",
];

/** Each window once and two random moments, one server kill, one freeze, one crowd, one storm over jobs and one over reminders. */
export function planShort(random: Random): Lane[] {
  const targets: Target[] = [...random.shuffle(windows), "random", "random"];
  return [
    [killing("workers killed, 1", targets.slice(0, 4), 3)],
    [
      killing("workers killed, 2", targets.slice(4), 3),
      crowding("a crowd asks a frozen worker", 8, 1),
      reminding("reminders", { sessions: 2, reminders: 25, blows: random.shuffle(stormBlows) }),
    ],
    [
      freezing("worker frozen", [6_000]),
      serverKilling("server killed", [random.pick(serverTargets)], 1),
      storming("jobs", {
        jobs: 6,
        blows: random.shuffle(stormBlows),
        frozenMs: 1_000,
      }),
    ],
  ];
}

/** Twenty kills of the worker, two in each window and ten random; five of the server; three freezes; a crowd; nine blows to jobs and nine to reminders. */
export function planFull(random: Random): Lane[] {
  const random10 = Array.from({ length: 10 }, (): Target => "random");
  const targets = random.shuffle<Target>([...windows, ...windows, ...random10]);
  return [
    [
      killing("workers killed, 1", targets.slice(0, 5), 4),
      killing("workers killed, 2", targets.slice(5, 10), 4),
      freezing("worker frozen, shortly", [6_000]),
      crowding("a crowd asks a frozen worker", 8, 4),
    ],
    [
      killing("workers killed, 3", targets.slice(10, 15), 4),
      killing("workers killed, 4", targets.slice(15), 4),
      freezing("worker frozen, missed by the server", [14_000, 6_000]),
      reminding("reminders", {
        sessions: 4,
        reminders: 50,
        blows: random.shuffle([...stormBlows, ...stormBlows, ...stormBlows]),
      }),
    ],
    [
      serverKilling(
        "server killed, 1",
        [...random.shuffle(serverTargets).slice(0, 2), "random"],
        3,
      ),
      serverKilling("server killed, 2", ["tool running", "random"], 3),
      storming("jobs", {
        jobs: 10,
        blows: random.shuffle([...stormBlows, ...stormBlows, ...stormBlows]),
        frozenMs: 25_000,
      }),
    ],
  ];
}

const stormBlows = ["worker killed", "server killed", "worker frozen"] as const;

function storming(name: string, storm: Storm): PlannedTrial {
  return { name, part: "jobs", run: (site, random, say) => stormJobs(site, random, say, storm) };
}

function reminding(name: string, plan: ReminderBlows): PlannedTrial {
  return {
    name,
    part: "reminders",
    run: (site, random, say) => remindUnderBlows(site, random, say, plan),
  };
}

function killing(name: string, plan: readonly Target[], turns: number): PlannedTrial {
  return attacking(name, "worker", turns, (trial) => killWorkers(trial, plan));
}

function freezing(name: string, plan: readonly number[]): PlannedTrial {
  return attacking(name, "worker", 2, (trial) => freezeWorkers(trial, plan));
}

function serverKilling(name: string, plan: readonly Target[], turns: number): PlannedTrial {
  return attacking(name, "server", turns, (trial) => killServers(trial, plan));
}

function crowding(name: string, sessions: number, rounds: number): PlannedTrial {
  const run: PlannedTrial["run"] = (site, random, say) =>
    askFrozenCrowd(site, random, say, { sessions, rounds });
  return { name, part: "worker", run };
}

/** A session of turns of ten steps, of which it may use so many. */
function attacking(
  name: string,
  part: PlannedTrial["part"],
  turns: number,
  attack: (trial: Trial) => Promise<void>,
): PlannedTrial {
  const run: PlannedTrial["run"] = (site, random, say) =>
    runTrial(site, random, say, { turns, steps: 9 }, attack);
  return { name, part, run };
}
