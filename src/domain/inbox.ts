import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { UserMessage } from "../contracts/content.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import type { InboxTarget, LogEntry, NewEntry } from "../contracts/log.js";
import type { SendCommand } from "../contracts/session.js";

/** How many message ids are remembered for exactly-once (design D9). */
export const seenWindow = 1_000;

/** Two durable ordered lists of accepted messages (spec/harness §2). Plain JSON. */
export interface InboxState {
  readonly nextTurn: readonly UserMessage[];
  readonly nextStep: readonly UserMessage[];
  /** A waking message is pending: an idle session opens a turn. */
  readonly wake: boolean;
  readonly seen: readonly SeenId[];
}

/** The verdict of an id, so that a repeat gets it again. */
export interface SeenId {
  readonly id: string;
  /** Short digest of mode and content. */
  readonly key: string;
  readonly seq: number;
}

export const emptyInbox: InboxState = { nextTurn: [], nextStep: [], wake: false, seen: [] };

export function pendingCount(inbox: InboxState): number {
  return inbox.nextTurn.length + inbox.nextStep.length;
}

export type SendDecision =
  | { readonly ok: true; readonly repeat: true; readonly seq: number }
  | { readonly ok: true; readonly repeat: false; readonly entry: NewEntry }
  | Refusal;

/**
 * Where a message goes. `followup` waits for a turn of its own, `steer` joins the running turn, `inject` joins the
 * next request without waking. After an abort was requested a steer goes to the next turn (spec/harness §2).
 */
export function decideSend(
  inbox: InboxState,
  command: SendCommand,
  aborting: boolean,
): SendDecision {
  const seen = inbox.seen.find((one) => one.id === command.id);
  const key = sendKey(command);
  if (seen !== undefined) {
    if (seen.key === key) return { ok: true, repeat: true, seq: seen.seq };
    return refuse(
      "DUPLICATE_ID",
      `message id ${JSON.stringify(command.id)} was already used for another message (entry ${seen.seq}); send this one under a new id`,
    );
  }
  const target: InboxTarget =
    command.mode === "followup" || (command.mode === "steer" && aborting)
      ? "next-turn"
      : "next-step";
  const message: UserMessage = {
    id: command.id,
    role: "user",
    content: [{ type: "text", text: command.content }],
    source: {
      kind: "user",
      mode: command.mode,
      ...(command.timeZone === undefined ? {} : { timeZone: command.timeZone }),
    },
  };
  const entry: NewEntry = {
    type: "agent/inbox/spliced",
    data: {
      target,
      start: listOf(inbox, target).length,
      inserted: [message],
      ...(command.mode === "inject" ? {} : { wake: true as const }),
    },
  };
  return { ok: true, repeat: false, entry };
}

/** Puts messages of the session itself (plugin contexts, stopping hooks) into the next step. */
export function decideInsert(
  inbox: InboxState,
  messages: readonly UserMessage[],
): readonly NewEntry[] {
  if (messages.length === 0) return [];
  return [
    {
      type: "agent/inbox/spliced",
      data: { target: "next-step", start: inbox.nextStep.length, inserted: messages },
    },
  ];
}

/** Claims at a turn's start: all next-step input, then one next-turn message; between steps: next-step only. */
export function decideClaim(
  inbox: InboxState,
  edge: "turn" | "step",
): { readonly messages: readonly UserMessage[]; readonly entries: readonly NewEntry[] } {
  const first = edge === "turn" ? inbox.nextTurn.slice(0, 1) : [];
  const entries: NewEntry[] = [];
  if (inbox.nextStep.length > 0) entries.push(removal("next-step", inbox.nextStep.length));
  if (first.length > 0) entries.push(removal("next-turn", first.length));
  return { messages: [...inbox.nextStep, ...first], entries };
}

/**
 * Empties both lists, next-step first (spec/harness §2, cancel). Reminders stay: they count as delivered, so nothing would bring
 * them again (spec/schedule C11).
 */
export function decideClear(inbox: InboxState): readonly NewEntry[] {
  const entries: NewEntry[] = [];
  if (inbox.nextStep.length > 0)
    entries.push(removal("next-step", inbox.nextStep.length, "canceled"));
  const { nextTurn } = inbox;
  // From the end, so that the places before stay what they are.
  for (let end = nextTurn.length; end > 0;) {
    const start = nextTurn.slice(0, end).findLastIndex(isReminder) + 1;
    if (start < end) entries.push(removal("next-turn", end - start, "canceled", start));
    end = start - 1;
  }
  return entries;
}

/** A reminder that was delivered into the inbox. */
export function isReminder({ source }: UserMessage): boolean {
  return source["plugin"] === "schedule";
}

export function foldInbox(inbox: InboxState, entry: LogEntry): InboxState {
  switch (entry.type) {
    case "agent/inbox/spliced": {
      const { target, start, removedCount = 0, inserted, wake } = entry.data;
      const list = [...listOf(inbox, target)];
      list.splice(start, removedCount, ...inserted);
      const next: InboxState = {
        ...inbox,
        ...(target === "next-turn" ? { nextTurn: list } : { nextStep: list }),
        wake: inbox.wake || wake === true,
      };
      const added =
        inserted.length === 0 ? next : { ...next, seen: remember(next, inserted, entry.seq) };
      return pendingCount(next) === 0 ? { ...added, wake: false } : added;
    }
    case "session/interrupt":
      return inbox.wake ? { ...inbox, wake: false } : inbox;
    case "turn/end": {
      const goesOn =
        entry.data.reason.kind === "completed" || entry.data.reason.kind === "max-tokens";
      const wake =
        pendingCount(inbox) > 0 && (goesOn || (entry.data.reason.kind === "aborted" && inbox.wake));
      return wake === inbox.wake ? inbox : { ...inbox, wake };
    }
    default:
      return inbox;
  }
}

function removal(
  target: InboxTarget,
  removedCount: number,
  outcome?: "canceled",
  start = 0,
): NewEntry {
  return {
    type: "agent/inbox/spliced",
    data: {
      target,
      start,
      removedCount,
      inserted: [],
      ...(outcome === undefined ? {} : { outcome }),
    },
  };
}

function listOf(inbox: InboxState, target: InboxTarget): readonly UserMessage[] {
  return target === "next-turn" ? inbox.nextTurn : inbox.nextStep;
}

/** The newest ids, and older ones whose message is still pending. */
function remember(
  inbox: InboxState,
  inserted: readonly UserMessage[],
  seq: number,
): readonly SeenId[] {
  const added = inserted
    .filter((message) => message.source.kind === "user")
    .map((message): SeenId => {
      const text = message.content[0]?.type === "text" ? message.content[0].text : "";
      return { id: message.id, key: keyOf(message.source["mode"] ?? "", text), seq };
    });
  const all = [...inbox.seen, ...added];
  if (all.length <= seenWindow) return all;
  const pending = new Set([...inbox.nextTurn, ...inbox.nextStep].map((message) => message.id));
  const oldest = all.length - seenWindow;
  return all.filter(({ id }, index) => index >= oldest || pending.has(id));
}

function sendKey(command: SendCommand): string {
  return keyOf(command.mode, command.content);
}

function keyOf(mode: string, content: string): string {
  return bytesToHex(sha256(utf8ToBytes(`${mode}\n${content}`))).slice(0, 16);
}
