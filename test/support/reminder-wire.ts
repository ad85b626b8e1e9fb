import type { SessionRunStatus, Wire } from "../../src/client/wire.js";
import { UndecidedError } from "../../src/client/undecided.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import { commands, queries } from "../../src/contracts/names.js";
import type { RemindersQuery, RemindersView } from "../../src/contracts/session.js";
import { outcomeOf } from "../../src/domain/schedule-change.js";
import { ScheduleRig } from "./schedule-rig.js";

export interface Sent {
  readonly as: "update" | "signal";
  readonly name: string;
  readonly id: string | undefined;
  readonly payload: unknown;
}

/** A session reduced to its reminders behind a wire that the test cuts before or after the session takes a call. */
export class ReminderWire implements Wire {
  readonly rig = new ScheduleRig();
  readonly sent: Sent[] = [];
  enabled = true;
  live = true;
  /** Of the next calls, one each: lost on the way there or on the way back. */
  readonly losses: ("request" | "answer")[] = [];
  /** Answers every command otherwise than the session does. */
  verdict: unknown;

  async query<T>(_session: string, name: string, args: unknown): Promise<T> {
    if (name !== queries.reminders) throw new Error(`${name} is not asked for here`);
    if (this.losses.shift() !== undefined) throw new LonghaulError("NO_WORKER", "no worker");
    const { requestId } = args as RemindersQuery;
    const { state } = this.rig;
    const outcome = requestId === undefined ? undefined : outcomeOf(state, requestId);
    const view: RemindersView = {
      enabled: this.enabled,
      records: state.fault === undefined ? state.records : [],
      live: this.live,
      ...(state.fault === undefined ? {} : { fault: state.fault }),
      ...(outcome === undefined ? {} : { outcome }),
    };
    return view as T;
  }

  async update<T>(_session: string, name: string, id: string, payload: unknown): Promise<T> {
    this.sent.push({ as: "update", name, id, payload });
    return this.#carried(name, payload) as T;
  }

  async signal(_session: string, name: string, payload: unknown): Promise<void> {
    this.sent.push({ as: "signal", name, id: undefined, payload });
    this.#carried(name, payload);
  }

  status(): Promise<SessionRunStatus | undefined> {
    return Promise.resolve({ open: true, status: "RUNNING" });
  }

  record(): Promise<never> {
    return Promise.reject(new Error("not asked for here"));
  }

  #carried(name: string, payload: unknown): unknown {
    const loss = this.losses.shift();
    const undecided = new UndecidedError("NO_WORKER", "no worker answered");
    if (loss === "request") throw undecided;
    const verdict =
      this.verdict ?? (name === commands.scheduleChange ? this.rig.change(payload) : { ok: true });
    if (loss === "answer") throw undecided;
    return verdict;
  }
}
