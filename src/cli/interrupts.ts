import { stopOf, type Io, type Stop } from "./io.js";

interface InterruptParts {
  /** Ends the process. */
  exit(code: number): void;
  /** To stderr. */
  write(text: string): void;
  /** How long a forced exit may wait for what it has to say. */
  readonly patienceMs?: number;
}

/** Names what stays behind when the process ends now; undefined for nothing. */
type Remains = () => Promise<string | undefined>;

/** Takes signals: the first ends the command in good order, the second at once, with a word about what stays behind. */
export class Interrupts {
  readonly #controller = new AbortController();
  readonly #parts: InterruptParts;
  readonly #remains = new Set<Remains>();
  #leaving = false;

  constructor(parts: InterruptParts) {
    this.#parts = parts;
  }

  /** Aborted by the first signal, with its `Stop`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** To be asked at a forced exit, until the function that it returns is called. */
  onForcedExit(remains: Remains): () => void {
    this.#remains.add(remains);
    return () => void this.#remains.delete(remains);
  }

  stop(reason: Stop): void {
    if (!this.signal.aborted) this.#controller.abort(reason);
    else if (isSignal(reason)) this.#leave(reason.exitCode);
  }

  #leave(exitCode: number): void {
    if (this.#leaving) return this.#parts.exit(exitCode);
    this.#leaving = true;
    const lines: string[] = [];
    const asked = [...this.#remains].map(async (remains) => {
      const line = await remains().catch(() => undefined);
      if (line !== undefined) lines.push(line);
    });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const patience = new Promise((resolve) => {
      timer = setTimeout(resolve, this.#parts.patienceMs ?? 500);
    });
    void Promise.race([Promise.all(asked), patience]).then(() => {
      clearTimeout(timer);
      for (const line of lines) this.#parts.write(`${line}\n`);
      this.#parts.exit(exitCode);
    });
  }
}

/** Says on stderr that a signal was taken, when the end of the command is not there in a moment. Call the result at the end. */
export function tellStopping({ stop, stderr }: Pick<Io, "stop" | "stderr">): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stopped = () => {
    const reason = stopOf(stop);
    // Nobody reads any more.
    if (!isSignal(reason)) return;
    const again =
      reason.why === "SIGINT" ? "Ctrl-C again to leave at once" : "again to leave at once";
    timer = setTimeout(
      () => stderr.write(`stopping: waiting for what runs (${again})\n`),
      noticeableMs,
    );
  };
  if (stop.aborted) stopped();
  else stop.addEventListener("abort", stopped, { once: true });
  return () => {
    clearTimeout(timer);
    stop.removeEventListener("abort", stopped);
  };
}

/** A stop that takes no longer needs no words. */
const noticeableMs = 700;

function isSignal({ why }: Stop): boolean {
  return why === "SIGINT" || why === "SIGTERM";
}
