import {
  ActivityFailure,
  allHandlersFinished,
  ApplicationFailure,
  condition,
  log,
  makeContinueAsNewFunc,
  patched,
  workflowInfo,
} from "@temporalio/workflow";
import { refuse, type Refusal } from "../contracts/errors.js";
import type { SessionInput } from "../contracts/session.js";
import { bodiesToStore, makeCheckpoint, type Checkpoint } from "../domain/checkpoint.js";
import { fillBodies } from "../domain/checkpoint-restore.js";
import { segmentName, segmentText } from "../domain/segment.js";
import type { Session } from "../domain/session.js";
import { archiveCalls, bodiesCalls, sessionRef } from "./activity-calls.js";
import type { Moment } from "./moment.js";
import type { EffectPump } from "./pump.js";

/** How long a session goes on as it is after a roll-over came to nothing, ms. */
const pauseMs = 60_000;

/**
 * The one way into a new run (design D8): at a step edge, also of an open turn, and when the session is idle. What leaves
 * history is in the archive before the run ends; what came meanwhile travels in the checkpoint.
 */
export class RollOver {
  readonly #session: Session;
  readonly #pump: EffectPump;
  readonly #input: SessionInput;
  readonly #moment: Moment;
  /** Entries the run began with. */
  readonly #carried: number;
  /** Not before, epoch ms: the run is too young; or an attempt came to nothing. */
  readonly #firstAt: number;
  #opensAt: number;
  #asked = false;
  #signals = 0;
  #updates = 0;

  constructor(session: Session, pump: EffectPump, input: SessionInput, moment: Moment) {
    this.#moment = moment;
    this.#session = session;
    this.#pump = pump;
    this.#input = input;
    this.#carried = session.log.entries.length;
    this.#firstAt = session.now + session.rollOverConfig.minIntervalMs;
    this.#opensAt = this.#firstAt;
  }

  /** Of `session.rollOver`: at the next edge, whatever the bounds say. */
  ask(): void {
    this.#asked = true;
    this.#opensAt = Math.min(this.#opensAt, this.#firstAt);
  }

  countSignal(): void {
    this.#signals += 1;
  }

  countUpdate(): void {
    this.#updates += 1;
  }

  /** Is the run to end at this edge? */
  get due(): boolean {
    return this.#session.now >= this.#opensAt && this.#isWanted;
  }

  /** Ms until an idle session that was asked may roll over; undefined when nothing has to be waited for. */
  get waitMs(): number | undefined {
    const left = this.#opensAt - this.#session.now;
    return this.#asked && left > 0 && this.#isWanted ? left : undefined;
  }

  /** Ends the run, by an exception that is the command for it; returns when it came to nothing, and the session goes on here. */
  async run(): Promise<void> {
    const session = this.#session;
    // Another release may read what this one could not.
    if (session.frozen) await goOn(this.#input);
    await this.#settle();
    const made = await this.#leave();
    session.leaving = undefined;
    if (made.ok) {
      const { seed: _, ...input } = this.#input;
      await goOn({ ...input, checkpoint: made.checkpoint });
    }
    this.#asked = false;
    this.#opensAt = session.now + pauseMs;
    if (made.ok || session.closing !== undefined) return;
    session.stays = made.message;
    log.warn(`session ${session.id} does not roll over: ${made.message}`);
  }

  get #isWanted(): boolean {
    const { closing, frozen, folds, log: entries } = this.#session;
    if (closing !== undefined) return false;
    const { info } = this.#moment;
    if (frozen)
      return (
        (this.#asked || info.targetWorkerDeploymentVersionChanged) &&
        entries.entries.length === this.#carried
      );
    if (!folds.place.ready || folds.turn.stepOpen) return false;
    if (this.#asked || info.continueAsNewSuggested || info.targetWorkerDeploymentVersionChanged)
      return true;
    // A run that logged nothing would be followed by another one like it.
    if (entries.entries.length === this.#carried) return false;
    const { events, bytes, signals, updates } = this.#session.rollOverConfig;
    return (
      info.historyLength >= events ||
      info.historySize >= bytes ||
      this.#signals >= signals ||
      this.#updates >= updates
    );
  }

  /** Nothing is under way beside the loop, and all handlers have finished. */
  async #settle(): Promise<void> {
    do {
      await this.#pump.rest();
      await condition(allHandlersFinished);
    } while (this.#pump.isBusy);
  }

  /** Archives what the log has, and makes the checkpoint. */
  async #leave(): Promise<{ readonly ok: true; readonly checkpoint: Checkpoint } | Refusal> {
    const session = this.#session;
    const { entries, firstSeq: from, lastSeq: to } = session.log;
    const { runId } = workflowInfo();
    const header = { v: 1, session: session.id, run: runId, from, to } as const;
    const previous = session.segment;
    let segment =
      entries.length === 0 ? previous : segmentName(segmentText({ ...header, previous }, entries));
    // Runs that were begun before go on with the first version: what fits, and so what they do, depends on it.
    const packed = patched("packed-checkpoint");
    const bodies = bodiesToStore(session, packed);
    const stored = new Set(bodies.keys());
    // To be packed costs more than to be told.
    const fits = makeCheckpoint(session, { to, stored, segment });
    if (!fits.ok && !(packed && makeCheckpoint(session, { to, stored, segment, packed }).ok))
      return fits;
    if (entries.length > 0 || bodies.size > 0) {
      session.leaving = bodies;
      const input = { from, to, previous, digest: segment, bodies: [...stored] };
      try {
        // Its name as it was written: a reset gives the run another id, and so the segment another name here.
        ({ segment } = await archiveCalls(`archive entries ${from} to ${to}`)["log.archive"]({
          ...sessionRef(),
          ...input,
        }));
      } catch (error) {
        return refuse("STORE_UNAVAILABLE", `the log cannot be archived: ${messageOf(error)}`);
      }
    }
    await this.#settle();
    if (session.closing !== undefined) return refuse("SESSION_CLOSED", "it closes");
    return makeCheckpoint(session, { to, stored, segment, packed });
  }
}

function goOn(input: SessionInput): Promise<unknown> {
  const options = { initialVersioningBehavior: "AUTO_UPGRADE" } as const;
  return makeContinueAsNewFunc<(next: SessionInput) => Promise<unknown>>(options)(input);
}

/** Fetches the texts a checkpoint tells by name; a text that is lost or damaged parks the session. Waits for the store. */
export async function fetchBodies(session: Session, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const fetched = new Map<string, string>();
  for (let left = names; left.length > 0; left = left.filter((name) => !fetched.has(name))) {
    const { bodies } = await bodiesCalls("texts of the run before")["log.bodies"]({
      ...sessionRef(),
      names: left,
    });
    const found = Object.entries(bodies).filter(([name]) => left.includes(name));
    if (found.length === 0) break;
    for (const [name, json] of found) fetched.set(name, json);
  }
  await condition(allHandlersFinished);
  const filled = fillBodies(session, fetched);
  if (filled.ok) return;
  session.fault ??= filled;
  session.frozen = true;
}

function messageOf(error: unknown): string {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof ApplicationFailure) return cause.message;
  return cause instanceof Error ? cause.message : String(cause);
}
