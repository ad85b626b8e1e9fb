import { LonghaulError, type Refusal } from "../contracts/errors.js";
import { maxCommandBytes } from "../contracts/schemas/session.js";
import type { Watchers } from "./watch.js";
import type { Wire } from "./wire.js";

/** Writes to one session: a refusal becomes an error with its code, and watchers look at once. */
export class SessionWriter {
  readonly #session: string;
  readonly #wire: Wire;
  readonly #watchers: Pick<Watchers, "nudge">;

  constructor(session: string, wire: Wire, watchers: Pick<Watchers, "nudge">) {
    this.#session = session;
    this.#wire = wire;
    this.#watchers = watchers;
  }

  /** `id`: the caller's; a repeat with the same command, id and payload is carried out once. */
  async write<T extends { readonly ok: boolean }>(
    command: string,
    id: string,
    payload: unknown,
  ): Promise<Exclude<T, Refusal>> {
    const verdict = await this.#wire.update<Exclude<T, Refusal> | Refusal>(
      this.#session,
      command,
      id,
      payload,
    );
    this.#watchers.nudge(this.#session);
    if (isRefusal(verdict)) throw new LonghaulError(verdict.code, verdict.message);
    return verdict;
  }
}

/** MESSAGE_TOO_LARGE beyond what a command may hold. */
export function checkSize(text: string, what: string): void {
  const bytes = Buffer.byteLength(text, "utf8");
  if (bytes <= maxCommandBytes) return;
  throw new LonghaulError(
    "MESSAGE_TOO_LARGE",
    `${what}: expected at most ${maxCommandBytes} bytes of UTF-8, got ${bytes}; put the content in a file and name it`,
  );
}

function isRefusal(verdict: { readonly ok: boolean }): verdict is Refusal {
  return !verdict.ok;
}
