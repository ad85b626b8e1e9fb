import { refuse, type Refusal } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import { bodySizes, textsOf, withoutBodies, type Body } from "./checkpoint-bodies.js";
import { packCheckpoint, packJobs, packSeen, type Checkpoint } from "./checkpoint-pack.js";
import { utf8Bytes } from "./guards.js";
import { recallOf } from "./recall.js";
import type { Session } from "./session.js";
import type { MeterState } from "./token-meter.js";

/** Largest checkpoint, UTF-8 bytes of JSON (design D8). */
export const maxCheckpointBytes = 524_288;
/** So many of the newest archived surface nodes are known one by one; a compaction may cut between them. */
const maxStubs = 500;

export type { Checkpoint } from "./checkpoint-pack.js";

/**
 * Texts that the archive is to hold before the roll-over, by their names: a checkpoint may tell them by name only. To be asked
 * for along with the entries that are archived.
 */
export function bodiesToStore(session: Session, packed = false): ReadonlyMap<string, string> {
  let bodies = new Map<string, string>();
  for (const limit of bodySizes) {
    bodies = new Map();
    const take = ({ digest, json }: Body): boolean => {
      bodies.set(digest, json);
      return true;
    };
    const checkpoint = cut(session, session.log.lastSeq, undefined, (part) =>
      withoutBodies(part, limit, take),
    );
    if (bytesOf(checkpoint) <= maxCheckpointBytes) break;
    if (packed && bytesOf(packCheckpoint(checkpoint)) <= maxCheckpointBytes) break;
  }
  return bodies;
}

/** What was archived before a checkpoint is made. */
export interface Archived {
  /** `seq` of the last archived entry; those after it travel in the checkpoint. */
  readonly to: number;
  /** Names of the bodies the archive holds. */
  readonly stored: ReadonlySet<string>;
  /** Name of the segment that ends with `to`. */
  readonly segment: string;
  /** It is to be of version 2; a run that was begun by a release that could not goes on with version 1. */
  readonly packed?: boolean;
}

/**
 * The checkpoint of a session at a step edge or when it is idle (design D8). Refused, and nothing is changed: when work is still on
 * its way, when an entry after `to` replaced what the model sees (archive again first), and CHECKPOINT_TOO_LARGE.
 */
export function makeCheckpoint(
  session: Session,
  { to, stored, segment, packed = false }: Archived,
): { readonly ok: true; readonly checkpoint: Checkpoint; readonly bytes: number } | Refusal {
  const { log } = session;
  if (!Number.isSafeInteger(to) || to < log.firstSeq - 1 || to > log.lastSeq)
    return refuse("INVARIANT", `entry ${to} is not one of ${log.firstSeq - 1} to ${log.lastSeq}`);
  if (session.effects.length > 0 || session.waits.live.length > 0 || session.released.size > 0)
    return refuse("INVARIANT", "work of this run is still on its way");
  if (session.folds.turn.stepOpen) return refuse("INVARIANT", "a step is open");
  const carried = carriedOf(session, to);
  const replaced = carried.find(
    ({ surfaceOp }) => surfaceOp !== undefined && surfaceOp !== "append",
  );
  if (replaced !== undefined)
    return refuse(
      "INVARIANT",
      `entry ${replaced.seq} replaced what the model sees; archive it first`,
    );
  const own = textsOf(carried);
  const take = ({ digest }: Body): boolean => stored.has(digest) || own.has(digest);
  let bytes = 0;
  let checkpoint: Checkpoint | undefined;
  for (const limit of bodySizes) {
    const plain = cut(session, to, segment, (part) => withoutBodies(part, limit, take));
    checkpoint = packed ? packCheckpoint(plain) : plain;
    bytes = bytesOf(checkpoint);
    if (bytes <= maxCheckpointBytes) return { ok: true, checkpoint, bytes };
  }
  const [largest] = Object.entries(checkpoint ?? {})
    .map(([name, part]) => ({ name, bytes: bytesOf(part) }))
    .toSorted((one, other) => other.bytes - one.bytes);
  return refuse(
    "CHECKPOINT_TOO_LARGE",
    `the session cannot roll over: its checkpoint has ${bytes} bytes, at most ${maxCheckpointBytes}; the largest part is ${largest?.name ?? "none"} with ${largest?.bytes ?? 0}`,
  );
}

/** `shorten` is applied to every part but the entries that travel along. */
function cut(
  session: Session,
  to: number,
  segment: string | undefined,
  shorten: (part: object) => unknown,
): Checkpoint {
  const { log, folds } = session;
  const carried = carriedOf(session, to);
  const { inbox, wakes, jobs, schedule, todo, ...state } = folds;
  const length =
    log.surface.length - carried.filter((entry) => entry.surfaceOp !== undefined).length;
  const meter = session.meter.follow(log.entries);
  const surface = log.surface.baseAt(length, stubsOf(session, length));
  const hidden = surface.hidden.seqs.length;
  const { fault, closing, refreshTools, routes } = session;
  return {
    v: 1,
    session: session.id,
    log: {
      seq: to + 1,
      turnOpen: turnOpenAt(session, to),
      ...(segment === undefined ? {} : { segment }),
      surface: {
        hidden: { seqs: packSeqs(surface.hidden.seqs), digest: surface.hidden.digest },
        stubs: surface.stubs.map(({ seq, hash }) => [seq, hash]),
      },
      carried,
      meter: packMeter(meter.stateHiding(hidden)),
      recall: shorten(recallOf(log.entries, session.recall)),
    },
    inbox: shortened(shorten, { ...inbox, seen: packSeen(inbox.seen), wakes }),
    jobs: shortened(shorten, { ...packJobs(jobs), heard: [...session.heard] }),
    schedule: shortened(shorten, schedule),
    todo: shortened(shorten, todo),
    state: shortened(shorten, {
      ...withoutUndefined(state),
      ...(fault === undefined ? {} : { fault }),
      ...(closing === undefined ? {} : { closing }),
      refreshTools,
      routes,
    }),
  };
}

function shortened(shorten: (part: object) => unknown, value: object): object {
  return shorten(value) as object;
}

function carriedOf({ log }: Session, to: number): readonly LogEntry[] {
  return log.entries.slice(to + 1 - log.firstSeq);
}

/** The hidden part must end where no call is unanswered: nothing can be cut within it. */
function stubsOf({ meter }: Session, length: number): number {
  const hidden = meter.hidden.length;
  let at = Math.max(hidden, length - maxStubs);
  const settled = (index: number): boolean =>
    index === hidden ? meter.hidden.settled : meter.nodes[index - 1 - hidden]?.settled === true;
  while (at > hidden && !settled(at)) at -= 1;
  return length - at;
}

function turnOpenAt({ log }: Session, to: number): boolean {
  const last = log.entries.findLast(
    ({ seq, type }) => seq <= to && (type === "turn/start" || type === "turn/end"),
  );
  return last === undefined ? log.startsInTurn : last.type === "turn/start";
}

/** Distances between neighbours: of a transcript mostly one digit each. */
function packSeqs(seqs: readonly number[]): string {
  return seqs.map((seq, index) => seq - (seqs[index - 1] ?? 0)).join(" ");
}

function packMeter({ nodes, ...rest }: MeterState): object {
  return {
    ...rest,
    nodes: nodes.map(({ seq, tokens, settled, checkpoint }) => [
      seq,
      tokens,
      settled ? 1 : 0,
      checkpoint === true ? 1 : 0,
    ]),
  };
}

function withoutUndefined(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined));
}

function bytesOf(value: unknown): number {
  return utf8Bytes(JSON.stringify(value));
}
