import { refuse, type Refusal } from "../contracts/errors.js";
import { commands } from "../contracts/names.js";
import type { CommandResult, RebindCommand } from "../contracts/session.js";
import { fieldsOf } from "./fields.js";
import { describeValue } from "./guards.js";
import { decideInsert } from "./inbox.js";
import { livenessEntries } from "./place.js";
import { pluginMessage, type Session } from "./session.js";
import { payOwedWake } from "./session-jobs.js";

/** Where a session is and whether it may open turns by itself (design D5). Callers have refused closed sessions. */

/** Interrupts like stop; inbox, jobs and reminders stay, and nothing opens a turn until it is resumed. */
export function suspendSession(session: Session): CommandResult {
  session.record(...livenessEntries(session.folds.place, { suspended: true }, "suspended"));
  session.requestAbort("user", true);
  return { ok: true };
}

/** What is overdue comes, and owed wakes are paid; when the host is bound, once it has answered. */
export function resumeSession(session: Session): CommandResult {
  session.record(...livenessEntries(session.folds.place, { suspended: false }, "resumed"));
  payOwedWake(session);
  return { ok: true };
}

export function parseRebind(
  input: unknown,
): { readonly ok: true; readonly value: RebindCommand } | Refusal {
  const { host } = fieldsOf(input);
  if (typeof host === "string" && /^[A-Za-z0-9._-]{1,200}$/u.test(host))
    return { ok: true, value: { host } };
  return refuse(
    "INVALID_INPUT",
    `${commands.rebind} expects \`host\`, 1-200 characters of A-Z a-z 0-9 . _ -, got ${describeValue(host)}`,
  );
}

/** Moves the session to another host and tells the model; its table is asked for at once. Jobs stay where they run. */
export function rebindSession(session: Session, { host }: RebindCommand): CommandResult {
  const { place, inbox } = session.folds;
  if (!session.config.worldTools) {
    return refuse(
      "INVALID_INPUT",
      `session ${session.id} has no world tools, so it is bound to no host; create one with a workspace`,
    );
  }
  if (place.host === host) return { ok: true };
  const epoch = place.epoch + 1;
  const from = place.host === undefined ? "" : ` from host ${place.host}`;
  const text = `This session has moved${from} to host ${host}. Files of the old host are not here unless both share them, and background jobs that were begun there stay there.`;
  session.record(
    { type: "session/bound", data: { host, epoch } },
    ...livenessEntries(place, { cold: false }, `moved to host ${host}`),
    ...decideInsert(inbox, [pluginMessage(`bound/${epoch}`, "session", text)]),
  );
  session.answeredAt = undefined;
  session.effects.push({ kind: "bind", epoch });
  return { ok: true };
}
