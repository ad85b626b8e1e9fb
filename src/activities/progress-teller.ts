import type { Client } from "@temporalio/client";
import type { JobRef } from "../contracts/activities.js";
import type { JobProgress } from "../contracts/jobs.js";
import { jobWorkflowId, signals } from "../contracts/names.js";
import type { Store } from "../contracts/store.js";
import type { JobProgressDetails } from "../kinds/following.js";
import { decodeText, tailBytes } from "../process/utf8.js";
import { jobStart, jobStreamsOf, storedParts } from "../store/job-output.js";
import { unbound } from "./job-calls.js";

const firstAfterMs = 5_000;
const shownBytes = 2_048;

/**
 * Tells a job's workflow for its page in Temporal UI what the job has printed: 5 s after it began to be followed, then at
 * twice the distance each time, because a signal stays in history.
 */
export class ProgressTeller {
  readonly #deps: { readonly client: Client; readonly store: Store };
  readonly #job: JobRef;
  #bytes = 0;
  #told = 0;
  #afterMs = firstAfterMs;
  #timer: NodeJS.Timeout;

  constructor(deps: { readonly client: Client; readonly store: Store }, job: JobRef) {
    this.#deps = deps;
    this.#job = job;
    this.#timer = this.#arm();
  }

  note(progress: JobProgressDetails): void {
    this.#bytes = Object.values(progress).reduce<number>(
      (sum, value) => (typeof value === "number" ? sum + value : sum),
      0,
    );
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(): NodeJS.Timeout {
    return setTimeout(() => void this.#tell(), this.#afterMs).unref();
  }

  async #tell(): Promise<void> {
    const bytes = this.#bytes;
    const isNew = bytes !== this.#told;
    if (isNew) this.#afterMs *= 2;
    this.#timer = this.#arm();
    if (!isNew) return;
    this.#told = bytes;
    const { client, store } = this.#deps;
    const { sessionId, jobId, nonce } = this.#job;
    try {
      const progress: JobProgress = {
        bytes,
        tail: await newest(store, sessionId, jobStart(this.#job)),
      };
      const handle = client.workflow.getHandle(jobWorkflowId(sessionId, jobId, nonce));
      await unbound(client, () => handle.signal(signals.jobProgress, progress));
    } catch {
      // It is for people who look; the next one tells more.
    }
  }
}

/** The end of each stream, as it is now. */
async function newest(store: Store, session: string, start: string): Promise<string> {
  const shown: string[] = [];
  for (const [index, { name, id }] of (await jobStreamsOf(store, session, start)).entries()) {
    const last = (await storedParts(store, session, start, id)).at(-1);
    if (last === undefined || last.bytes === 0) continue;
    const from = Math.max(0, last.bytes - shownBytes);
    const bytes = Buffer.from(await store.read(session, last.stream, from, shownBytes));
    const text = decodeText(tailBytes(bytes, from === 0 ? shownBytes : shownBytes - 1));
    shown.push(index === 0 ? text : `[${name}]\n${text}`);
  }
  return shown.join(shown[0]?.endsWith("\n") === true ? "" : "\n");
}
