import type { JobsFrame } from "../contracts/jobs.js";
import type { LogEntry } from "../contracts/log.js";
import type { SessionStateName } from "../contracts/names.js";
import type { StreamedText } from "./stream-follower.js";
import { appendRun, runsAfter, runsOf, type TextRun } from "./text-runs.js";
import type { WatchEvent } from "./types.js";

/** Where one watcher is: the last entry it was given, and what text of the step under way it has seen. Pure. */
export class WatchCursor {
  #position: number;
  #step: { readonly turn: number; readonly step: number } | undefined;
  #stream: string | undefined;
  /** Pieces of `#stream` that were given. */
  #pieces = 0;
  #shown: readonly TextRun[] = [];
  #state: SessionStateName | undefined;
  /** The set of jobs given last, as JSON. Absence is the empty set (spec/jobs §15). */
  #jobs = "[]";

  /** `after`: the last `seq` that is not to be given. */
  constructor(after: number) {
    this.#position = after;
  }

  /** `seq` of the last entry given. */
  get position(): number {
    return this.#position;
  }

  /** The open step that has no assistant message yet. */
  get openStep(): { readonly turn: number; readonly step: number } | undefined {
    return this.#step;
  }

  /** Learns from entries up to the start, which are not given, whether a step is under way there. */
  prime(entries: readonly LogEntry[]): void {
    for (const entry of entries) if (entry.seq <= this.#position) this.#follow(entry);
  }

  /** The events for an entry; none when it was given before. */
  entry(entry: LogEntry): readonly WatchEvent[] {
    if (entry.seq <= this.#position) return [];
    this.#position = entry.seq;
    const text =
      entry.type === "assistant/message"
        ? this.#complete(entry.data.turn, entry.data.step, entry)
        : [];
    this.#follow(entry);
    return [...text, { type: "entry", entry }];
  }

  /** The events for what has been streamed in the step under way. */
  streamed(text: StreamedText): readonly WatchEvent[] {
    const step = this.#step;
    if (step === undefined || step.turn !== text.turn || step.step !== text.step) return [];
    const events: WatchEvent[] = [];
    if (this.#stream !== text.stream) {
      if (this.#shown.length > 0) events.push({ type: "restart", ...step });
      this.#stream = text.stream;
      this.#pieces = 0;
      this.#shown = [];
    }
    let fresh: readonly TextRun[] = [];
    for (const piece of text.pieces.slice(this.#pieces)) fresh = appendRun(fresh, piece);
    this.#pieces = text.pieces.length;
    for (const run of fresh) {
      this.#shown = appendRun(this.#shown, run);
      events.push({ type: "delta", ...step, ...run });
    }
    return events;
  }

  state(state: SessionStateName): readonly WatchEvent[] {
    if (state === this.#state) return [];
    this.#state = state;
    return [{ type: "state", state }];
  }

  jobs(frame: JobsFrame): readonly WatchEvent[] {
    const set = JSON.stringify(frame.jobs);
    if (set === this.#jobs) return [];
    this.#jobs = set;
    return [frame];
  }

  /**
   * The rest of a message's text, taken from the entry, which is the truth and needs no store: what is missing when it
   * continues what was shown of the stream it names, else a restart and all of it.
   */
  #complete(
    turn: number,
    step: number,
    entry: LogEntry & { readonly type: "assistant/message" },
  ): readonly WatchEvent[] {
    const whole = runsOf(entry.data.message);
    const other = entry.data.stream !== undefined && entry.data.stream.stream !== this.#stream;
    const rest = other && this.#shown.length > 0 ? undefined : runsAfter(whole, this.#shown);
    const deltas = (rest ?? whole).map((run): WatchEvent => ({
      type: "delta",
      turn,
      step,
      ...run,
    }));
    return rest === undefined ? [{ type: "restart", turn, step }, ...deltas] : deltas;
  }

  #follow(entry: LogEntry): void {
    switch (entry.type) {
      case "step/start":
        this.#enter({ turn: entry.data.turn, step: entry.data.step });
        break;
      case "assistant/message":
      case "step/end":
      case "turn/end":
        this.#enter(undefined);
        break;
      default:
        break;
    }
  }

  #enter(step: { readonly turn: number; readonly step: number } | undefined): void {
    this.#step = step;
    this.#stream = undefined;
    this.#pieces = 0;
    this.#shown = [];
  }
}
