import type { UserMessage } from "../../src/contracts/content.js";
import type { JobEntry, JobOwner } from "../../src/contracts/jobs.js";
import type { LogEntry, NewEntry } from "../../src/contracts/log.js";
import { decideClaim, emptyInbox, foldInbox, type InboxState } from "../../src/domain/inbox.js";
import {
  foldWakes,
  freshWakes,
  type OwnerView,
  type WakeState,
} from "../../src/domain/job-notices.js";

/** One owner: its inbox and wake budget, folded from its own log, and the state it is in. */
export class RigOwner {
  readonly session: string;
  readonly token: string;
  inbox: InboxState = emptyInbox;
  wakes: WakeState = freshWakes;
  busy = false;
  live = true;
  closing = false;
  #seq = 0;

  constructor(session: string, token: string) {
    this.session = session;
    this.token = token;
  }

  get id(): JobOwner {
    return { session: this.session, token: this.token };
  }

  get view(): OwnerView {
    const { token, inbox, wakes, busy, live, closing } = this;
    return { token, inbox, wakes, busy, live, closing };
  }

  record(...entries: readonly (NewEntry | JobEntry)[]): void {
    for (const entry of entries) {
      const stored = { ...entry, seq: this.#seq++, time: 0 } as LogEntry;
      this.wakes = foldWakes(this.wakes, stored, this.inbox);
      this.inbox = foldInbox(this.inbox, stored);
    }
  }

  /** A message of this source kind arrives, and is claimed. */
  claim(kind: "user" | "plugin"): void {
    const message: UserMessage = {
      id: `m${this.#seq}`,
      role: "user",
      content: [],
      source: { kind },
    };
    this.record({
      type: "agent/inbox/spliced",
      data: { target: "next-step", start: this.inbox.nextStep.length, inserted: [message] },
    });
    this.record(...decideClaim(this.inbox, "step").entries);
  }
}
