import type { SessionConfig } from "../contracts/config.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import { readBody, textsOf, withBodies } from "./checkpoint-bodies.js";
import { unpackCheckpoint, unpackJobs, unpackSeen } from "./checkpoint-pack.js";
import { inboxShape, jobsShape, logShape, stateShape, todoShape } from "./checkpoint-shape.js";
import { entryFlaw } from "./entry-shape.js";
import { SessionLog } from "./log.js";
import type { Recall } from "./recall.js";
import { isFields, type Fields } from "./reference-entry.js";
import { restoreSchedule } from "./schedule-snapshot.js";
import { sessionInputProblem } from "./session-input.js";
import { initialFolds, Session, type SessionFolds, type SessionNames } from "./session.js";
import type { Shape } from "./shape.js";
import { TokenMeter, type MeterState, type NodeMeasure } from "./token-meter.js";

export interface RestoreContext {
  readonly id: string;
  readonly now: () => number;
  readonly names?: SessionNames;
  /** In force when the checkpoint's own cannot be read: the start input's. */
  readonly config: SessionConfig;
}

export interface Restored {
  readonly session: Session;
  /** Names of the bodies to fetch before the first turn; handlers may run without them. */
  readonly missing: readonly string[];
  /** The archived segment the log goes on from. */
  readonly segment?: string;
}

/**
 * The session of a checkpoint of any shape; total. A schedule that cannot be read faults the reminders alone (spec/schedule C13);
 * any other part that cannot is the session's fault: it is parked, and shows what could be read (design D8).
 */
export function restoreSession(checkpoint: unknown, context: RestoreContext): Restored {
  const given: Fields = isFields(checkpoint) ? unpackCheckpoint(checkpoint) : {};
  const faults = new Faults();
  faults.note(versionProblem(given, context.id));
  const past = restoreLog(given["log"], faults);
  const bodies = textsOf(past.log.entries);
  const read = withBodies(
    {
      folds: {
        ...restoreParts(given, faults),
        schedule: restoreSchedule(given["schedule"]),
      },
      recall: past.recall,
    },
    bodies,
  );
  const state = faults.read("state", given["state"], stateShape) ?? {};
  const { fault, closing, refreshTools, routes, ...kept } = withBodies(state, bodies).value as {
    readonly fault?: Refusal;
    readonly closing?: { readonly reason?: string };
    readonly refreshTools?: boolean;
    readonly routes?: Session["routes"];
  };
  const folds: SessionFolds = {
    ...initialFolds,
    config: context.config,
    ...kept,
    ...read.value.folds,
  };
  faults.note(configProblem(folds.config));
  const session = new Session(context.id, context.now, context.names, {
    log: past.log,
    folds: faults.first === undefined ? folds : { ...folds, config: safeConfig(folds, context) },
    meter: past.meter,
    recall: read.value.recall,
    ...(past.segment === undefined ? {} : { segment: past.segment }),
  });
  session.fault = fault ?? faults.first;
  session.frozen = faults.first !== undefined;
  session.closing = closing;
  session.refreshTools = refreshTools ?? false;
  session.routes = routes ?? [];
  const jobs = faults.first === undefined ? (given["jobs"] as Fields) : {};
  for (const [id, at] of (jobs["heard"] ?? []) as readonly (readonly [string, number])[])
    session.heard.set(id, at);
  const missing = new Set([...read.missing, ...withBodies(state, bodies).missing]);
  return {
    session,
    missing: [...missing],
    ...(past.segment === undefined ? {} : { segment: past.segment }),
  };
}

/**
 * Puts fetched bodies (JSON by name) in their places. LOG_CORRUPT when one is missing or is not what its name says: nothing is
 * changed then.
 */
export function fillBodies(
  session: Session,
  fetched: ReadonlyMap<string, string>,
): { readonly ok: true } | Refusal {
  const bodies = new Map<string, string>();
  for (const [digest, json] of fetched) {
    const text = readBody(digest, json);
    if (text === undefined)
      return refuse("LOG_CORRUPT", `the archived text ${digest.slice(0, 12)} is damaged`);
    bodies.set(digest, text);
  }
  const filled = withBodies({ folds: session.folds, recall: session.recall }, bodies);
  const [first] = filled.missing;
  if (first !== undefined)
    return refuse(
      "LOG_CORRUPT",
      `the archive lacks the text ${first.slice(0, 12)} of the session's checkpoint`,
    );
  session.adoptFolds(filled.value.folds);
  session.recall = filled.value.recall;
  return { ok: true };
}

/** What cannot be read; the first is told. */
class Faults {
  first: Refusal | undefined;

  note(problem: Refusal | string | undefined): void {
    if (problem === undefined) return;
    this.first ??=
      typeof problem === "string"
        ? refuse("LOG_CORRUPT", `the checkpoint cannot be read: ${problem}`)
        : problem;
  }

  read(name: string, part: unknown, shape: Shape): Fields | undefined {
    const problem = shape(part);
    if (problem === undefined) return part as Fields;
    this.note(`${name}${problem}`);
    return undefined;
  }
}

function versionProblem(given: Fields, id: string): Refusal | string | undefined {
  const { v, session } = given;
  if (typeof v === "number" && v > 2)
    return refuse(
      "LOG_UNSUPPORTED",
      `the checkpoint has version ${v}, this release reads 1 and 2; deploy the release that wrote it`,
    );
  if (v !== 1 && v !== 2) return "it has no version";
  return session === id ? undefined : `it is one of ${JSON.stringify(session) ?? "no session"}`;
}

function restoreParts(given: Fields, faults: Faults): Partial<SessionFolds> {
  const inbox = faults.read("inbox", given["inbox"], inboxShape);
  const jobs = faults.read("jobs", given["jobs"], jobsShape);
  const todo = faults.read("todo", given["todo"], todoShape);
  const { wakes, seen, ...waiting } = inbox ?? {};
  const { heard: _, ...packed } = jobs ?? {};
  const registry = jobs === undefined ? undefined : unpackJobs(packed);
  if (jobs !== undefined && registry === undefined)
    faults.note("jobs.jobs names an owner that is not there");
  return {
    ...(inbox === undefined
      ? {}
      : { inbox: { ...waiting, seen: unpackSeen(seen as readonly unknown[]) }, wakes }),
    ...(registry === undefined ? {} : { jobs: registry }),
    ...(todo === undefined ? {} : { todo }),
  } as unknown as Partial<SessionFolds>;
}

interface RestoredLog {
  readonly log: SessionLog;
  readonly meter: TokenMeter;
  readonly recall: Recall;
  readonly segment?: string;
}

function restoreLog(given: unknown, faults: Faults): RestoredLog {
  const empty = { log: new SessionLog(), meter: new TokenMeter(), recall: { turnZones: [] } };
  const read = faults.read("log", given, logShape);
  if (read === undefined) return empty;
  const { seq, turnOpen, surface, carried, meter, recall, segment } = read as unknown as {
    readonly seq: number;
    readonly turnOpen: boolean;
    readonly surface: {
      readonly hidden: { readonly seqs: string; readonly digest: string };
      readonly stubs: readonly (readonly [number, string])[];
    };
    readonly carried: readonly LogEntry[];
    readonly meter: PackedMeter;
    readonly recall: Recall;
    readonly segment?: string;
  };
  const seqs = unpackSeqs(surface.hidden.seqs);
  const stubs = surface.stubs.map(([of, hash]) => ({ seq: of, hash }));
  const all = [...(seqs ?? []), ...stubs.map((stub) => stub.seq)];
  if (
    seqs === undefined ||
    all.some((one) => one < 0 || one >= seq) ||
    new Set(all).size < all.length
  ) {
    faults.note("log.surface has nodes that are no earlier entries");
    return empty;
  }
  const { digest } = surface.hidden;
  const log = new SessionLog({ seq, turnOpen, surface: { hidden: { seqs, digest }, stubs } });
  for (const entry of carried) {
    const flaw = carryFlaw(log, entry);
    if (flaw === undefined) continue;
    faults.note(flaw);
    break;
  }
  const measures = unpackMeter(meter);
  if (
    faults.first === undefined &&
    measures.hidden.length + measures.nodes.length !== log.surface.length
  )
    faults.note("log.meter does not measure the surface");
  return {
    log,
    meter: new TokenMeter(measures),
    recall,
    ...(segment === undefined ? {} : { segment }),
  };
}

function carryFlaw(log: SessionLog, entry: LogEntry): string | undefined {
  const at = `log.carried: entry ${entry.seq}`;
  if (entry.seq !== log.lastSeq + 1) return `${at} follows ${log.lastSeq}`;
  const flaw = entryFlaw(entry.type, entry.data);
  if (flaw !== undefined) return `${at}: ${flaw.problem}`;
  const appended = log.append(entry, entry.time);
  return appended.ok ? undefined : `${at}: ${appended.message}`;
}

type PackedMeter = Omit<MeterState, "nodes"> & {
  readonly nodes: readonly (readonly [
    seq: number,
    tokens: number,
    settled: number,
    checkpoint: number,
  ])[];
};

function unpackMeter({ nodes, ...rest }: PackedMeter): MeterState {
  return {
    ...rest,
    nodes: nodes.map(([seq, tokens, settled, checkpoint]): NodeMeasure => ({
      seq,
      tokens,
      settled: settled === 1,
      ...(checkpoint === 1 ? { checkpoint: true } : {}),
    })),
  };
}

function unpackSeqs(packed: string): readonly number[] | undefined {
  if (packed === "") return [];
  if (!/^-?\d{1,15}(?: -?\d{1,15})*$/u.test(packed)) return undefined;
  let last = 0;
  return packed.split(" ").map((distance) => (last += Number(distance)));
}

function configProblem(config: SessionConfig | undefined): string | undefined {
  const problem = sessionInputProblem({ v: 1, config, attributes: [] });
  return problem === undefined ? undefined : `state.config: ${problem}`;
}

function safeConfig(folds: SessionFolds, { config }: RestoreContext): SessionConfig {
  return configProblem(folds.config) === undefined ? (folds.config ?? config) : config;
}
