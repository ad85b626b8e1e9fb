import type { ArchiveLogInput } from "../contracts/activities.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import type { Projections, SessionView } from "../contracts/session.js";
import { canonicalJson } from "./canonical.js";
import { SessionLog } from "./log.js";
import { foldWhole } from "./seed.js";
import { segmentName, segmentText } from "./segment.js";
import { initialFolds, Session, type SessionFolds } from "./session.js";
import { projectionsOf, viewOf } from "./views.js";

/** A model call as history has it: what the model was shown is told by length and digest (design D2). */
export interface WitnessedCall {
  readonly run: string;
  /** Id of the history event that has it. */
  readonly event: string;
  readonly turn: number;
  readonly step: number;
  readonly headerSeq: number;
  readonly length: number;
  readonly digest: string;
  /** The request of a summary, which may show less than all. */
  readonly summary: boolean;
}

/**
 * Goes through a whole log from its first entry: each must append to a fresh log, and each model call that history has must be
 * what the log shows at a moment of its step.
 */
export class LogVerifier {
  readonly #log = new SessionLog();
  readonly #waiting = new Map<string, WitnessedCall[]>();
  #folds: SessionFolds = initialFolds;
  #calls = 0;
  #mismatch: string | undefined;

  constructor(calls: readonly WitnessedCall[]) {
    for (const call of calls) {
      const place = placeOf(call);
      const there = this.#waiting.get(place);
      if (there === undefined) this.#waiting.set(place, [call]);
      else there.push(call);
    }
  }

  get lastSeq(): number {
    return this.#log.lastSeq;
  }

  /** Model calls that were found. */
  get calls(): number {
    return this.#calls;
  }

  take(entry: LogEntry): { readonly ok: true } | Refusal {
    const { lastSeq } = this.#log;
    if (entry.seq !== lastSeq + 1)
      return refuse("LOG_CORRUPT", `entry ${lastSeq + 1} was expected, entry ${entry.seq} came`);
    this.#folds = foldWhole(this.#folds, entry, this.#log.entries);
    const appended = this.#log.append(entry, entry.time);
    if (!appended.ok) return refuse("LOG_CORRUPT", `entry ${entry.seq}: ${appended.message}`);
    if (canonicalJson(appended.entry) !== canonicalJson(entry))
      return refuse("LOG_CORRUPT", `entry ${entry.seq} has more than an entry has`);
    this.#match(entry);
    return { ok: true };
  }

  at(seq: number): LogEntry | undefined {
    return this.#log.at(seq);
  }

  /** Name of the segment that these entries make; undefined when they are not there. */
  segmentName(of: ArchiveLogInput): string | undefined {
    const { sessionId: session, runId: run, from, to, previous } = of;
    const entries = this.#log.entries.slice(from, to + 1);
    if (entries.length !== to + 1 - from) return undefined;
    return segmentName(segmentText({ v: 1, session, run, from, to, previous }, entries));
  }

  /** What is wrong with the first call that is not what the log shows, or whose step the log does not have. */
  get mismatch(): string | undefined {
    const [call] = [...this.#waiting.values()].flat();
    return this.#mismatch ?? (call && `the log has no ${nameOf(call)}`);
  }

  /** The session at the end of what was taken, for its views. */
  session(id: string): Session {
    return new Session(id, () => 0, undefined, { log: this.#log, folds: this.#folds });
  }

  #match(entry: LogEntry): void {
    if (entry.type === "compaction/start") {
      for (const [place, calls] of this.#waiting)
        this.#settle(
          place,
          calls.filter((call) => !(call.summary && this.#shows(call))),
        );
      return;
    }
    const { turn } = this.#folds;
    const ends = entry.type === "step/end";
    const place = `${turn.number}.${turn.step}`;
    const waiting = turn.stepOpen || ends ? this.#waiting.get(place) : undefined;
    if (waiting === undefined) return;
    const left = waiting.filter((call) => call.summary || !this.#shows(call));
    this.#settle(place, left);
    const differs = ends ? left.find((call) => !call.summary) : undefined;
    if (differs === undefined) return;
    const { surface } = this.#log;
    this.#mismatch ??= `${nameOf(differs)} was shown ${differs.length} messages with digest ${short(differs.digest)} under header ${differs.headerSeq}; the log has ${surface.length} with ${short(surface.digestAt(differs.length))} under header ${this.#folds.header?.seq ?? "none"} at the end of that step`;
  }

  #settle(place: string, left: WitnessedCall[]): void {
    const before = this.#waiting.get(place)?.length ?? 0;
    this.#calls += before - left.length;
    if (left.length === 0) this.#waiting.delete(place);
    else this.#waiting.set(place, left);
  }

  #shows({ length, digest, headerSeq, summary }: WitnessedCall): boolean {
    const { surface } = this.#log;
    if (headerSeq !== (this.#folds.header?.seq ?? -1)) return false;
    if (summary ? length > surface.length : length !== surface.length) return false;
    return surface.digestAt(length) === digest;
  }
}

/**
 * The first part of what a session shows that its log does not say, told for people; undefined when there is none. `session` is
 * the whole log's, up to the entry that both were asked at.
 */
export function showsOtherThan(
  session: Session,
  shown: { readonly view: SessionView; readonly projections: Projections },
): string | undefined {
  const told = viewOf(session, undefined);
  const parts: readonly (readonly [name: string, shown: unknown, told: unknown])[] = [
    ["lastSeq", shown.view.lastSeq, told.lastSeq],
    ["header", shown.view.header, told.header],
    ["config", shown.view.config, told.config],
    ["turn", shown.view.turn, told.turn],
    ["lastEnd", shown.view.lastEnd ?? null, told.lastEnd ?? null],
    ["inbox", shown.view.inbox, told.inbox],
    ["todos", shown.view.todos, told.todos],
    ["host", shown.view.host ?? null, told.host ?? null],
    ["projections", shown.projections, projectionsOf(session)],
  ];
  const other = parts.find(([, one, two]) => canonicalJson(one) !== canonicalJson(two));
  if (other === undefined) return undefined;
  const [name, one, two] = other;
  return `the session shows ${name} ${brief(one)}, its log says ${brief(two)}`;
}

function placeOf({ turn, step }: WitnessedCall): string {
  return `${turn}.${step}`;
}

function nameOf({ turn, step, run, event, summary }: WitnessedCall): string {
  const what = summary ? "summary request" : "model call";
  return `${what} of turn ${turn}, step ${step} (run ${run}, event ${event})`;
}

function short(digest: string): string {
  return digest === "" ? "none" : digest.slice(0, 12);
}

function brief(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
