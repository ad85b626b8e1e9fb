import { LonghaulError } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import { commands } from "../contracts/names.js";
import { parseInput } from "../contracts/schemas/parse.js";
import { compactSchema } from "../contracts/schemas/session.js";
import type { CompactResult } from "../contracts/session.js";
import { estimateMessage } from "../domain/token-meter.js";
import type { SessionWriter } from "./session-write.js";
import type { WatchEvent, WatchOptions } from "./types.js";
import { freshId } from "./update-id.js";

export interface CompactOptions {
  /** Operation id, default a fresh one. A repeat under the same id answers what became of the first. */
  readonly id?: string;
  /** Ends the waiting; the compaction itself goes on. */
  readonly signal?: AbortSignal;
}

/** What became of a compaction. Without a `problem` nothing was to be cut. */
export type CompactionOutcome =
  | {
      readonly changed: true;
      /** How many messages the summary stands for, their size, and the summary's own. Estimates. */
      readonly messages: number;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | {
      readonly changed: false;
      /** `summary`: the model wrote none that is of use; `cancelled`, `changed`, `commit`. */
      readonly problem?: string;
      readonly message?: string;
    };

/** Compaction of one session on demand, for SessionClient, which documents it. */
export class SessionCompaction {
  readonly #session: string;
  readonly #writer: SessionWriter;
  readonly #watch: (options: WatchOptions) => AsyncIterable<WatchEvent>;

  constructor(
    session: string,
    writer: SessionWriter,
    watch: (options: WatchOptions) => AsyncIterable<WatchEvent>,
  ) {
    this.#session = session;
    this.#writer = writer;
    this.#watch = watch;
  }

  async compact({ id, signal }: CompactOptions): Promise<CompactionOutcome> {
    const opId = id ?? freshId("n", Date.now());
    const command = parseInput(compactSchema, { opId }, "compact");
    const verdict = await this.#writer.write<CompactResult>(commands.compact, opId, command);
    if (verdict.result === "nothing") return { changed: false };
    const { compactionId, seq } = verdict;
    const entries: LogEntry[] = [];
    const watching = { after: seq - 1, ...(signal === undefined ? {} : { signal }) };
    for await (const event of this.#watch(watching)) {
      if (event.type !== "entry") continue;
      const { entry } = event;
      entries.push(entry);
      if (entry.type === "compaction/end" && entry.data.compactionId === compactionId)
        return outcomeOf(entries, entry.data);
    }
    throw signal?.aborted === true
      ? new LonghaulError("ABORTED", "waiting for the compaction was aborted by its signal")
      : new LonghaulError(
          "SESSION_CLOSED",
          `session ${this.#session} has ended while its transcript was compacted`,
        );
  }
}

function outcomeOf(
  entries: readonly LogEntry[],
  { compactionId, error, message }: { compactionId: string; error?: string; message?: string },
): CompactionOutcome {
  const at = entries.findIndex(
    (entry) => entry.type === "compaction/summary" && entry.data.compactionId === compactionId,
  );
  const [summary, replacement] = [entries[at], entries[at + 1]];
  if (
    error === undefined &&
    summary?.type === "compaction/summary" &&
    replacement?.type === "user/message"
  ) {
    return {
      changed: true,
      messages: summary.data.shadowedSeqs.length,
      tokensBefore: summary.data.shadowedTokenCount,
      tokensAfter: estimateMessage(replacement.data.message),
    };
  }
  return {
    changed: false,
    ...(error === undefined ? {} : { problem: error }),
    ...(message === undefined ? {} : { message }),
  };
}
