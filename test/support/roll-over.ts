import type { SessionConfig } from "../../src/contracts/config.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { bodiesToStore, makeCheckpoint, type Checkpoint } from "../../src/domain/checkpoint.js";
import { fillBodies, restoreSession } from "../../src/domain/checkpoint-restore.js";
import type { Session } from "../../src/domain/session.js";

/** What the archive holds of one session: its closed entries in order, and bodies by name. */
export class Archive {
  readonly entries: LogEntry[] = [];
  readonly bodies = new Map<string, string>();
  readonly sizes: number[] = [];
  /** Checkpoints are of version 2. */
  readonly packed: boolean;
  /** Bodies that had to be fetched. */
  fetched = 0;

  constructor({ packed = true } = {}) {
    this.packed = packed;
  }

  /** The session in its next run; `carry` entries at most travel in the checkpoint. */
  rollOver(session: Session, now: () => number, config: SessionConfig, carry = 0): Session {
    const { log } = session;
    const replaced = log.entries.findLast(
      ({ surfaceOp }) => surfaceOp !== undefined && surfaceOp !== "append",
    );
    const to = Math.max(log.firstSeq - 1, replaced?.seq ?? -1, log.lastSeq - carry);
    for (const [digest, json] of bodiesToStore(session, this.packed)) this.bodies.set(digest, json);
    const stored = new Set(this.bodies.keys());
    const { packed } = this;
    const made = makeCheckpoint(session, { to, stored, segment: `segment-${to}`, packed });
    if (!made.ok) throw new Error(made.message);
    this.entries.push(...log.entries.filter(({ seq }) => seq <= to));
    this.sizes.push(made.bytes);
    const wire = JSON.parse(JSON.stringify(made.checkpoint)) as Checkpoint;
    const { id, names } = session;
    const restored = restoreSession(wire, { id, now, names, config });
    this.fetched += restored.missing.length;
    const filled = fillBodies(
      restored.session,
      new Map(restored.missing.map((digest) => [digest, this.bodies.get(digest) ?? "lost"])),
    );
    if (!filled.ok) throw new Error(filled.message);
    return restored.session;
  }

  /** The whole log: what is archived and what is live. */
  whole(session: Session): readonly LogEntry[] {
    return [...this.entries, ...session.log.entries];
  }
}
