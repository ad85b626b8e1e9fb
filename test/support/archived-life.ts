import type { SessionSource } from "../../src/activities/session-source.js";
import { archiveLog, fetchBodies } from "../../src/activities/archive-log.js";
import type { SurfaceRequest } from "../../src/activities/surface-reader.js";
import type { ArchiveLogInput } from "../../src/contracts/activities.js";
import type { Archive } from "../../src/contracts/archive.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { SurfaceNode } from "../../src/contracts/session.js";
import { bodiesToStore, makeCheckpoint } from "../../src/domain/checkpoint.js";
import { fillBodies, restoreSession } from "../../src/domain/checkpoint-restore.js";
import { segmentName, segmentText } from "../../src/domain/segment.js";
import type { Session } from "../../src/domain/session.js";
import { bodiesPage, logPage, surfacePage } from "../../src/domain/views.js";
import { PureRun, type Script } from "./pure-driver.js";
import { config } from "./session-script.js";
import type { RecordedRequest } from "./witness.js";

/** A model call by reference, and what the log says it is to be shown. */
export interface LifeRequest {
  readonly ref: SurfaceRequest & { readonly headerSeq: number };
  readonly shown: RecordedRequest;
}

/**
 * One session over its runs, whose closed entries are in a real archive: written by what the activity does, out of the pages that
 * the run shows.
 */
export class ArchivedLife {
  readonly archive: Archive;
  session: Session;
  run = 0;
  segments: string[] = [];
  /** Entries that the run itself no longer has. */
  readonly past: LogEntry[] = [];
  /** Pages of the surface that were asked for. */
  asked = 0;
  /** Only the run that is open answers. */
  readonly source: SessionSource = {
    nodes: async (ref, query) => {
      this.asked += 1;
      const page = surfacePage(this.#open(ref.runId), query);
      if ("ok" in page) throw new Error(page.message);
      return overTheWire(page);
    },
    log: async (ref, query) => overTheWire(logPage(this.#open(ref.runId), query)),
    bodies: async (ref, names) => overTheWire(bodiesPage(this.#open(ref.runId), names)),
  };

  constructor(archive: Archive, session: Session) {
    this.archive = archive;
    this.session = session;
  }

  get runId(): string {
    return `r${this.run}`;
  }

  get segment(): string {
    return this.segments.at(-1) ?? "";
  }

  /** Nodes that the process of the run is told of, and from which position. */
  offer(): readonly [from: number, nodes: readonly SurfaceNode[]] {
    const { session } = this;
    const from = session.offered;
    session.offered = session.log.surface.length;
    const nodes = Array.from({ length: session.offered - from }, (_, index) =>
      session.log.surface.nodeAt(from + index),
    );
    return [from, overTheWire(nodes.filter((node) => node !== undefined))];
  }

  /** Turns until it is idle; the model calls they made. */
  play(script: Script = {}): LifeRequest[] {
    const refs: LifeRequest["ref"][] = [];
    const driven = new PureRun(this.session, {
      ...script,
      archived: this.past,
      model: (call) => {
        const { headerSeq, length, digest } = call;
        refs.push({
          v: 1,
          sessionId: this.session.id,
          runId: this.runId,
          base: this.segment,
          headerSeq,
          length,
          digest,
        });
        return (
          script.model?.(call) ?? {
            kind: "reply",
            content: [{ type: "text", text: "ok" }],
            finish: "stop",
          }
        );
      },
    });
    driven.untilIdle();
    return refs.map((ref, index) => ({ ref, shown: driven.requests[index] as RecordedRequest }));
  }

  /** What the workflow gives the archive activity; `carry` entries at most travel in the checkpoint. */
  leave(carry = 0): ArchiveLogInput {
    const { session } = this;
    session.effects.length = 0;
    const { log } = session;
    const replaced = log.entries.findLast(
      ({ surfaceOp }) => surfaceOp !== undefined && surfaceOp !== "append",
    );
    const from = log.firstSeq;
    const to = Math.max(from, replaced?.seq ?? -1, log.lastSeq - carry);
    const previous = this.segment;
    const header = { v: 1, session: session.id, run: this.runId, from, to, previous } as const;
    const entries = log.entries.filter(({ seq }) => seq <= to);
    session.leaving = bodiesToStore(session, true);
    return {
      v: 1,
      sessionId: session.id,
      runId: this.runId,
      from,
      to,
      previous,
      digest: segmentName(segmentText(header, entries)),
      bodies: [...session.leaving.keys()],
    };
  }

  /** Into the next run. */
  async rollOver(carry = 0): Promise<void> {
    const input = this.leave(carry);
    await archiveLog(this, input, new AbortController().signal);
    const { to, digest: segment } = input;
    const { session, archive } = this;
    session.leaving = undefined;
    const stored = new Set(input.bodies);
    const made = makeCheckpoint(session, { to, stored, segment, packed: true });
    if (!made.ok) throw new Error(made.message);
    const { id, names } = session;
    let now = session.now;
    const context = { id, now: () => (now += 1), names, config };
    const restored = restoreSession(overTheWire(made.checkpoint), context);
    const bodies = new Map<string, string>();
    for (let left = restored.missing; left.length > 0;) {
      const answer = await fetchBodies(archive, { ...input, names: left });
      for (const [name, json] of Object.entries(answer.bodies)) bodies.set(name, json);
      if (Object.keys(answer.bodies).length === 0) throw new Error("a text is lost");
      left = left.filter((name) => !bodies.has(name));
    }
    const filled = fillBodies(restored.session, bodies);
    if (!filled.ok) throw new Error(filled.message);
    this.past.push(...session.log.entries.filter(({ seq }) => seq <= to));
    this.segments.push(segment);
    this.session = restored.session;
    this.run += 1;
  }

  #open(runId: string): Session {
    if (runId !== this.runId) throw new Error(`run ${runId} has ended`);
    return this.session;
  }
}

function overTheWire<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
