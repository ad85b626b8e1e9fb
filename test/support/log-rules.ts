import type { LogEntry } from "../../src/contracts/log.js";

/** What every session log keeps (spec/harness §§1, 2); returns what is broken. An open turn at the end is fine. */
export function brokenRules(log: readonly LogEntry[]): string[] {
  const broken: string[] = [];
  const inbox = { "next-turn": [] as string[], "next-step": [] as string[] };
  const claimed = new Set<string>();
  const shown = new Set<string>();
  const say = (entry: LogEntry, text: string): void => {
    broken.push(`entry ${entry.seq} (${entry.type}): ${text}`);
  };
  let lastTurn = 0;
  let turn: number | undefined;
  let step: number | undefined;
  let lastStep = 0;
  let owed: string[] = [];
  let called: string[] = [];
  let bracket: Extract<LogEntry, { type: "compaction/start" }> | undefined;
  for (const [index, entry] of log.entries()) {
    if (entry.seq !== index) say(entry, `stands at place ${index}`);
    if (isReplacement(entry)) {
      if (!isAnnounced(entry, log[index - 1])) say(entry, "replaces what no compaction announced");
      continue;
    }
    switch (entry.type) {
      case "compaction/start":
        if (bracket !== undefined) say(entry, `${bracket.data.compactionId} is still open`);
        if (entry.data.turn !== (turn ?? null))
          say(entry, `owned by ${entry.data.turn}, open is ${turn}`);
        bracket = entry;
        break;
      case "compaction/summary":
        if (bracket?.data.compactionId !== entry.data.compactionId)
          say(entry, "outside its bracket");
        break;
      case "compaction/end":
        if (bracket?.data.compactionId !== entry.data.compactionId)
          say(entry, "ends no open bracket");
        bracket = undefined;
        break;
      case "session/end-seed":
        bracket = undefined;
        break;
      case "turn/start":
        if (bracket !== undefined) say(entry, `${bracket.data.compactionId} is still open`);
        if (turn !== undefined) say(entry, `turn ${turn} is still open`);
        if (entry.data.turn !== lastTurn + 1)
          say(entry, `turn ${entry.data.turn} follows ${lastTurn}`);
        lastTurn = entry.data.turn;
        turn = lastTurn;
        lastStep = 0;
        break;
      case "turn/end":
        if (turn !== entry.data.turn) say(entry, `ends turn ${entry.data.turn}, open is ${turn}`);
        if (step !== undefined) say(entry, `step ${step} is still open`);
        if (bracket !== undefined) say(entry, `${bracket.data.compactionId} is still open`);
        turn = undefined;
        break;
      case "step/start":
        if (turn === undefined || step !== undefined) say(entry, "outside a turn or within a step");
        if (entry.data.step !== lastStep + 1)
          say(entry, `step ${entry.data.step} follows ${lastStep}`);
        lastStep = entry.data.step;
        step = lastStep;
        owed = [];
        called = [];
        break;
      case "step/end":
        if (step !== entry.data.step) say(entry, `ends step ${entry.data.step}, open is ${step}`);
        if (owed.length > 0) say(entry, `calls without a result: ${owed.join(", ")}`);
        step = undefined;
        break;
      case "assistant/message":
        if (step === undefined) say(entry, "outside a step");
        owed = entry.data.message.content.flatMap((block) =>
          block.type === "tool-call" ? [block.callId] : [],
        );
        break;
      case "tool/call":
        if (!owed.includes(entry.data.callId)) say(entry, `call ${entry.data.callId} is not owed`);
        called.push(entry.data.callId);
        break;
      case "tool/result": {
        const [block] = entry.data.message.content;
        const id = block?.type === "tool-result" ? block.callId : "";
        if (owed[0] !== id) say(entry, `result of ${id}, next owed is ${owed[0]}`);
        if (!called.includes(id)) say(entry, `result of ${id} before its call`);
        owed = owed.filter((one) => one !== id);
        break;
      }
      case "agent/inbox/spliced": {
        const { target, start, removedCount = 0, inserted, outcome } = entry.data;
        const removed = inbox[target].splice(start, removedCount, ...inserted.map((one) => one.id));
        if (removed.length !== removedCount)
          say(entry, `removes ${removedCount} of ${removed.length}`);
        if (outcome !== "canceled") for (const id of removed) claimed.add(id);
        break;
      }
      case "user/message": {
        const { id, source } = entry.data.message;
        if (step === undefined) say(entry, "outside a step");
        if (shown.has(id)) say(entry, `message ${id} a second time`);
        if (source.kind === "user" && !claimed.has(id))
          say(entry, `message ${id} was never claimed`);
        shown.add(id);
        break;
      }
      default:
        break;
    }
  }
  return broken;
}

/** Does it take the place of what the model saw (spec/harness §6)? */
function isReplacement({ surfaceOp }: LogEntry): boolean {
  return surfaceOp !== undefined && surfaceOp !== "append";
}

/** A replacement follows the entry that says what it stands for, at once. */
function isAnnounced(entry: LogEntry, before: LogEntry | undefined): boolean {
  const expected = entry.type === "tool/result" ? "compaction/prune" : "compaction/summary";
  if (before?.type !== expected) return false;
  return before.data.shadowedSeqs.join() === entry.sourceEventSeqs?.join();
}
