import type { Archive } from "../contracts/archive.js";
import type { SessionConfig } from "../contracts/config.js";
import { LonghaulError, type Refusal } from "../contracts/errors.js";
import type { LogEntry, SessionHeader } from "../contracts/log.js";
import { sessionIdSchema } from "../contracts/schemas/session.js";
import type { Store } from "../contracts/store.js";
import { bodiesToStore, makeCheckpoint, type Checkpoint } from "../domain/checkpoint.js";
import { loadLog, type SessionLog } from "../domain/log.js";
import { importLog } from "../domain/log-text.js";
import { closeLog, factsOf, plantSeed, seedConfig, stretchesOf } from "../domain/plant-seed.js";
import { forkHeader, importHeader, planFork } from "../domain/seed.js";
import type { Session } from "../domain/session.js";
import { readStream } from "../store/stream-reader.js";
import { usedId, type SeedSource } from "./create-session.js";
import type { CreateSessionOptions, ForkOptions, ImportNotes, ImportOptions } from "./types.js";
import type { Wire } from "./wire.js";

/** A new session that begins with a log: what it is created with, and how its seed is stored. */
export interface Seeding {
  readonly options: CreateSessionOptions;
  readonly seed: SeedSource;
}

export interface SeedDeps {
  /** It knows archived sessions too. */
  readonly wire: Pick<Wire, "record">;
  readonly archive: Archive;
  readonly store: Store;
  readonly now: () => number;
}

/** Plans a fork of a log (spec/harness §1). INVALID_BOUNDARY, OPEN_TURN. */
export function planForking(
  deps: SeedDeps,
  source: string,
  entries: readonly LogEntry[],
  options: ForkOptions,
): Seeding {
  const { boundary, config: asked, ...rest } = options;
  const { seed } = accepted(planFork(entries, boundary));
  const { log } = accepted(loadLog(seed));
  const facts = factsOf(entries);
  const config = accepted(seedConfig({ ...facts, ...factsOf(seed) }, asked)).config;
  const parent = facts.header ?? { version: 0, id: source, createdAt: entries[0]?.time ?? 0 };
  const headerOf = (id: string): SessionHeader =>
    forkHeader(parent, { id, createdAt: deps.now(), seedLength: seed.length });
  return {
    options: {
      ...(facts.host === undefined ? {} : { host: facts.host }),
      ...rest,
      config,
      parentSession: source,
    },
    seed: seedSource(deps, "fork", log, config, headerOf, (id) =>
      copyPictures(deps.store, source, id, log),
    ),
  };
}

/** Reads, repairs and plans an import (spec/harness §11). LOG_CORRUPT, LOG_UNSUPPORTED, INVALID_INPUT. */
export function planImport(
  deps: SeedDeps,
  text: string,
  options: ImportOptions,
): Seeding & { readonly notes: ImportNotes } {
  const { config: asked, fallbackConfig, ...rest } = options;
  const { header, log, dropped, unused } = accepted(importLog(text));
  const closed = closeLog(log);
  const { config } = accepted(seedConfig(factsOf(log.entries), asked, fallbackConfig));
  const parent = sessionIdSchema.safeParse(header.parentSession).data;
  const headerOf = (id: string): SessionHeader =>
    importHeader(header, { id, createdAt: deps.now() });
  return {
    options: { ...rest, config, ...(parent === undefined ? {} : { parentSession: parent }) },
    notes: { entries: log.entries.length, dropped, closed, unused },
    seed: seedSource(deps, "import", log, config, headerOf),
  };
}

function seedSource(
  { wire, archive }: SeedDeps,
  kind: SeedSource["kind"],
  log: SessionLog,
  config: SessionConfig,
  headerOf: (id: string) => SessionHeader,
  bring: (id: string) => Promise<void> = () => Promise.resolve(),
): SeedSource {
  return {
    kind,
    async plant(id) {
      await refuseUsed(wire, id);
      await bring(id);
      const header = { ...headerOf(id), ...(config.cwd === undefined ? {} : { cwd: config.cwd }) };
      return storeSeed(archive, plantSeed({ kind, header, config, log }));
    },
  };
}

/**
 * Before anything is stored, so that a start that is refused leaves nothing. When another takes the id in between, what was stored
 * lies beside that session's own under names that nothing refers to.
 */
async function refuseUsed(wire: SeedDeps["wire"], id: string): Promise<void> {
  try {
    // Nothing ever happened in one that found no host.
    if ((await wire.record(id)).failure?.code === "NO_HOST") return;
  } catch (error) {
    if (error instanceof LonghaulError && error.code === "SESSION_NOT_FOUND") return;
    throw error;
  }
  throw usedId(id);
}

/** Archives the log of a planted session in segments of bounded size, and makes the checkpoint it starts from. */
async function storeSeed(archive: Archive, session: Session): Promise<Checkpoint> {
  const { id, log } = session;
  let previous = "";
  for (const stretch of stretchesOf(log.entries)) {
    const [from, to] = [stretch[0]?.seq ?? 0, stretch.at(-1)?.seq ?? 0];
    const header = { v: 1, session: id, run: "seed", from, to, previous } as const;
    previous = await archive.write(header, stretch);
  }
  const bodies = bodiesToStore(session);
  for (const [name, json] of bodies) await archive.putBody(id, name, json);
  const archived = { to: log.lastSeq, stored: new Set(bodies.keys()), segment: previous };
  return accepted(makeCheckpoint(session, archived)).checkpoint;
}

function accepted<T extends { readonly ok: true }>(result: T | Refusal): T {
  if (result.ok) return result;
  throw new LonghaulError(result.code, result.message);
}

/** What the model may be shown: pictures are read from the session's own streams. One that is gone is left out, as in a request. */
async function copyPictures(
  store: Store,
  source: string,
  id: string,
  { surface }: SessionLog,
): Promise<void> {
  const blocks = surface.nodes.flatMap(({ message }) =>
    message.role === "user" ? message.content : [],
  );
  const pictures = blocks.flatMap((block) =>
    block.type === "tool-result" ? (block.images ?? []) : [],
  );
  for (const stream of new Set(pictures.map((picture) => picture.stream))) {
    if ((await store.size(source, stream)) === undefined) continue;
    let offset = 0;
    for await (const piece of readStream(store, source, stream))
      offset = await store.append(id, stream, offset, piece);
    await store.sync(id, stream);
  }
}
