import { refuse, type Refusal } from "../contracts/errors.js";
import { commands } from "../contracts/names.js";
import type { CompactCommand, CompactResult } from "../contracts/session.js";
import { newestSpan, openBracket } from "./compaction.js";
import { fieldsOf } from "./fields.js";
import { describeValue } from "./guards.js";
import type { Session } from "./session.js";

/** Whatever came in a `session.compact`, checked: it may come from any Temporal client. */
export function parseCompact(
  input: unknown,
): { readonly ok: true; readonly value: CompactCommand } | Refusal {
  const { opId } = fieldsOf(input);
  if (typeof opId === "string" && opId !== "" && opId.length <= 200)
    return { ok: true, value: { opId } };
  return refuse(
    "INVALID_INPUT",
    `${commands.compact} expects an \`opId\` of 1 to 200 characters, got ${describeValue(opId)}`,
  );
}

/** Opens a bracket that no turn owns; the loop leads it to its end with `compactAsked`. Nothing is logged when nothing is to be cut. */
export function askCompaction(session: Session, opId: string): CompactResult {
  const { compaction, turn } = session.folds;
  if (compaction.asked?.opId === opId) return requested(compaction.asked.seq);
  if (compaction.open !== undefined)
    return refuse("BUSY", `${compaction.open.id} of session ${session.id} has not ended`);
  if (turn.open || session.shouldRun())
    return refuse("BUSY", `session ${session.id} is running a turn; ask again when it is idle`);
  if (newestSpan(session) === undefined) return { ok: true, result: "nothing" };
  openBracket(session, null, opId);
  return requested(session.log.lastSeq);
}

function requested(seq: number): CompactResult {
  return { ok: true, result: "requested", compactionId: `compaction/${seq}`, seq };
}
