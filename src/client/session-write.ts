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
    const verdict = await this.ask<Exclude<T, Refusal> | Refusal>(command, id, payload);
    if (isRefusal(verdict)) throw new LonghaulError(verdict.code, verdict.message);
    return verdict;
  }

  /** The verdict as it is. Throws only what the call itself met, UndecidedError when it may still be carried out. */
  async ask<T>(command: string, id: string, payload: unknown): Promise<T> {
    const verdict = await this.#wire.update<T>(this.#session, command, id, payload);
    this.#watchers.nudge(this.#session);
    return verdict;
  }

  /** The same without a verdict: the server keeps it until a worker takes it. */
  async tell(command: string, payload: unknown): Promise<void> {
    await this.#wire.signal(this.#session, command, payload);
    this.#watchers.nudge(this.#session);
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
