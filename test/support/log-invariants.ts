import { expect } from "vitest";
import type { EndReason, LogEntry } from "../../src/contracts/log.js";
import { fold, initialFolds, type Session } from "../../src/domain/session.js";
import { digestFromScratch } from "./pure-driver.js";

/** What holds of every log at rest: nothing is under way, whatever happened before (spec/harness §§1-3). */
export function expectSoundLog(session: Session): void {
  const entries = JSON.parse(JSON.stringify(session.log.entries)) as readonly LogEntry[];
  expect(session.fault).toBeUndefined();
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
  // What takes the place of other entries stands where they are shortened, not where they came.
  const first = entries.filter(
    ({ surfaceOp }) => surfaceOp === undefined || surfaceOp === "append",
  );
  expectBrackets(first);
  expectAnswers(first);
  expect(session.log.surface.digest()).toBe(digestFromScratch(session));
  expect(entries.reduce(fold, initialFolds)).toEqual(session.folds);
  expect(JSON.parse(JSON.stringify(session.folds))).toEqual(session.folds);
}

/** Turns and steps are numbered upwards, do not overlap, and each is closed once; an aborted turn names its first cause. */
function expectBrackets(entries: readonly LogEntry[]): void {
  let turns = 0;
  let turn: number | undefined;
  let steps = 0;
  let step: number | undefined;
  let cause: string | undefined;
  let asked = false;
  for (const { type, data, seq } of entries) {
    const at = `entry ${seq} ${type}`;
    switch (type) {
      case "turn/start":
        expect([at, turn, step, data.turn]).toEqual([at, undefined, undefined, turns + 1]);
        turn = turns += 1;
        steps = 0;
        cause = undefined;
        break;
      case "step/start":
        expect([at, step, data.turn, data.step]).toEqual([at, undefined, turn, steps + 1]);
        step = steps += 1;
        break;
      case "step/end":
        expect([at, data.turn, data.step]).toEqual([at, turn, step]);
        step = undefined;
        break;
      case "turn/end":
        expect([at, step, data.turn]).toEqual([at, undefined, turn]);
        expect([at, data.reason.kind === "aborted" ? data.reason.reason : undefined]).toEqual([
          at,
          cause,
        ]);
        turn = undefined;
        break;
      case "session/interrupt":
        if (turn === undefined) expect([at, asked]).toEqual([at, true]);
        else cause ??= data.reason;
        break;
      case "compaction/start":
        asked = data.turn === null;
        break;
      case "compaction/end":
        asked = false;
        break;
      case "agent/inbox/spliced":
        // A prompt is claimed alone, before the first step of its turn.
        if (data.target === "next-turn" && data.removedCount && data.outcome === undefined) {
          expect([at, data.removedCount, steps, turn]).toEqual([at, 1, 0, turns]);
        }
        break;
      case "user/message":
      case "request/header":
      case "request/context":
        expect([at, step]).not.toEqual([at, undefined]);
        break;
      case "assistant/message":
      case "tool/call":
      case "tool/result":
        expect([at, data.turn, data.step]).toEqual([at, turn, step]);
        break;
      default:
        break;
    }
  }
  expect([turn, step]).toEqual([undefined, undefined]);
}

/** Every call of a reply meets exactly one `tool/call` and one `tool/result`, in model order, within its step. */
function expectAnswers(entries: readonly LogEntry[]): void {
  for (const reply of entries) {
    if (reply.type !== "assistant/message") continue;
    const { turn, step, message } = reply.data;
    const asked = message.content.flatMap((block) => (block.type === "tool-call" ? [block] : []));
    const called: LogEntry[] = [];
    const answered: (readonly [string, readonly number[] | undefined])[] = [];
    for (const entry of entries) {
      if (entry.type !== "tool/call" && entry.type !== "tool/result") continue;
      if (entry.data.turn !== turn || entry.data.step !== step) continue;
      expect(entry.seq).toBeGreaterThan(reply.seq);
      if (entry.type === "tool/call") called.push(entry);
      else {
        const [block] = entry.data.message.content;
        answered.push([block?.type === "tool-result" ? block.callId : "", entry.sourceEventSeqs]);
      }
    }
    expect(called.map(({ data }) => data)).toEqual(
      asked.map(({ callId, name, arguments: raw }) => ({
        turn,
        step,
        callId,
        name,
        arguments: raw,
      })),
    );
    expect(answered).toEqual(called.map(({ seq }, index) => [asked[index]?.callId, [seq]]));
  }
}

/** Where each message that was ever put in went, from the splices alone. */
export interface MessageFates {
  readonly pending: readonly string[];
  readonly canceled: readonly string[];
  /** Claimed, and the end of the turn that claimed it. */
  readonly claimed: readonly { readonly id: string; readonly end: EndReason | undefined }[];
}

/** Plays the inbox again with code of its own; a splice out of range, or an id pending twice, fails. */
export function messageFates(entries: readonly LogEntry[]): MessageFates {
  const lists: { [target: string]: string[] } = { "next-turn": [], "next-step": [] };
  const canceled: string[] = [];
  const claimed: { id: string; turn: number }[] = [];
  const ends = new Map<number, EndReason>();
  let turn = 0;
  for (const { type, data } of entries) {
    if (type === "turn/start") turn = data.turn;
    if (type === "turn/end") ends.set(data.turn, data.reason);
    if (type !== "agent/inbox/spliced") continue;
    const { target, start, removedCount = 0, inserted, outcome } = data;
    const list = lists[target] ?? [];
    expect(start + removedCount).toBeLessThanOrEqual(list.length);
    const removed = list.splice(start, removedCount, ...inserted.map(({ id }) => id));
    if (outcome === "canceled") canceled.push(...removed);
    else claimed.push(...removed.map((id) => ({ id, turn })));
    const all = Object.values(lists).flat();
    expect(new Set(all).size).toBe(all.length);
  }
  return {
    pending: Object.values(lists).flat(),
    canceled,
    claimed: claimed.map((one) => ({ id: one.id, end: ends.get(one.turn) })),
  };
}
