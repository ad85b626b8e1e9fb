/**
 * The second half of the witness: holds a session's log against its Temporal history. It does not re-run the workflow;
 * it checks that what the log says came from outside (user text, model replies, world tool results) stands in history
 * with the same content, and that every model call was scheduled for the surface the log has at that place.
 * Like witness.ts it shares nothing with src.
 */
import { type Entry, canonical, witnessRequests } from "./witness.js";

/** A history as `historyToJSON` or `temporal workflow show -o json` gives it, parsed. */
export interface HistoryJson {
  readonly events?: readonly HistoryEvent[];
}

type Attributes = Record<string, unknown>;
type HistoryEvent = Record<string, unknown>;

export interface ScheduledActivity {
  readonly type: string;
  readonly input: Record<string, unknown>;
  /** Result of the activity; undefined when it failed, timed out or is still open. */
  readonly result?: unknown;
}

export interface HistoryFacts {
  readonly sends: readonly { readonly id: string; readonly content: string }[];
  readonly activities: readonly ScheduledActivity[];
}

/** What history says came from outside. Give the histories of all runs of a session, oldest first. */
export function readHistory(runs: readonly HistoryJson[]): HistoryFacts {
  const sends: { id: string; content: string }[] = [];
  const activities: ScheduledActivity[] = [];
  for (const run of runs) {
    const byEvent = new Map<
      string,
      { -readonly [K in keyof ScheduledActivity]: ScheduledActivity[K] }
    >();
    for (const event of run.events ?? []) {
      const update = attributes(event, "workflowExecutionUpdateAccepted");
      const request = (update?.["acceptedRequest"] as Attributes | undefined)?.["input"] as
        | Attributes
        | undefined;
      if (request?.["name"] === "session.send") sends.push(...messagesOf(request["args"]));
      const signal = attributes(event, "workflowExecutionSignaled");
      if (signal?.["signalName"] === "session.send") sends.push(...messagesOf(signal["input"]));
      const scheduled = attributes(event, "activityTaskScheduled");
      if (scheduled !== undefined) {
        const type = (scheduled["activityType"] as { name: string }).name;
        const [input] = decode(scheduled["input"]);
        const activity = { type, input: (input ?? {}) as Record<string, unknown> };
        byEvent.set(String(event["eventId"]), activity);
        activities.push(activity);
      }
      const completed = attributes(event, "activityTaskCompleted");
      if (completed !== undefined) {
        const activity = byEvent.get(String(completed["scheduledEventId"]));
        if (activity !== undefined) activity.result = decode(completed["result"])[0];
      }
    }
  }
  return { sends, activities };
}

/** What the log claims without a proof in history; empty when every claim has one. */
export function compareWithHistory(log: readonly unknown[], facts: HistoryFacts): string[] {
  const entries = log as readonly Entry[];
  return [
    ...checkModelCalls(entries, facts),
    ...entries.flatMap((entry) => {
      if (entry.type === "user/message") return checkUserMessage(entry, facts);
      if (entry.type === "assistant/message") return checkReply(entry, facts);
      if (entry.type === "tool/result") return checkToolResult(entry, facts);
      if (entry.type === "compaction/summary") return checkSummary(entry, facts);
      return [];
    }),
  ];
}

function checkModelCalls(log: readonly Entry[], facts: HistoryFacts): string[] {
  const requests = witnessRequests(log);
  const calls = facts.activities.filter(
    (activity) => activity.type === "callModel" && activity.input["summary"] === undefined,
  );
  const name = (at: { turn?: unknown; step?: unknown; retry?: unknown }) =>
    `model call ${String(at.turn)}.${String(at.step)} retry ${String(at.retry)}`;
  const differences: string[] = [];
  for (const { input } of calls) {
    const request = requests.find((candidate) => name(candidate) === name(input));
    if (request === undefined) {
      differences.push(`${name(input)}: scheduled, but the log has no such request`);
      continue;
    }
    if (input["length"] !== request.nodes) {
      differences.push(
        `${name(input)}: shown ${String(input["length"])} nodes, the log has ${request.nodes}`,
      );
    }
    if (input["headerSeq"] !== request.headerSeq) {
      differences.push(
        `${name(input)}: header ${String(input["headerSeq"])}, the log says ${request.headerSeq}`,
      );
    }
  }
  for (const request of requests) {
    const proven = ["reply", "retry", "overflow"].includes(request.outcome);
    if (proven && !calls.some(({ input }) => name(input) === name(request))) {
      differences.push(`${name(request)}: answered in the log, never scheduled`);
    }
  }
  return differences;
}

/** User text is what was sent under this id; messages of other sources are the session's own. */
function checkUserMessage(entry: Entry, facts: HistoryFacts): string[] {
  const message = entry.data["message"] as {
    id: string;
    content: Block[];
    source: { kind: string };
  };
  if (message.source.kind !== "user") return [];
  // A refused send may have used the id before.
  const sent = facts.sends.filter((send) => send.id === message.id);
  if (sent.length === 0) return [`entry ${entry.seq}: message ${message.id} was never sent`];
  const text = textOf(message.content);
  return sent.some((send) => send.content === text)
    ? []
    : [
        `entry ${entry.seq}: message ${message.id} reads ${JSON.stringify(text)}, sent was ${JSON.stringify(sent.map((send) => send.content))}`,
      ];
}

/** A reply is what one model call of this step returned; cut-off replies lose their tool calls (spec §1). */
function checkReply(entry: Entry, facts: HistoryFacts): string[] {
  const { turn, step } = entry.data;
  const logged = (entry.data["message"] as { content: Block[] }).content;
  const outcomes = facts.activities
    .filter(
      (activity) =>
        activity.type === "callModel" &&
        activity.input["summary"] === undefined &&
        activity.input["turn"] === turn &&
        activity.input["step"] === step,
    )
    .map(
      (activity) =>
        activity.result as { kind?: string; finish?: string; content?: Block[] } | undefined,
    );
  const matches = outcomes.some((outcome) => {
    if (outcome?.content === undefined) return false;
    const cut = outcome.kind === "cancelled" || outcome.finish === "max-tokens";
    const kept = cut
      ? outcome.content.filter((block) => block.type !== "tool-call")
      : outcome.content;
    return canonical(kept) === canonical(logged);
  });
  return matches
    ? []
    : [`entry ${entry.seq}: no model call of ${String(turn)}.${String(step)} returned this reply`];
}

/** A summary is what one model call about exactly those nodes returned. */
function checkSummary(entry: Entry, facts: HistoryFacts): string[] {
  const { compactionId, shadowedSeqs, summary } = entry.data;
  const matches = facts.activities.some(({ type, input, result }) => {
    if (type !== "callModel" || input["summary"] === undefined) return false;
    const said = (result as { content?: Block[] } | undefined)?.content ?? [];
    return (
      input["length"] === (shadowedSeqs as readonly unknown[]).length &&
      textOf(said).trim() === textOf(summary as Block[])
    );
  });
  return matches
    ? []
    : [`entry ${entry.seq}: no model call returned the summary of ${String(compactionId)}`];
}

/** A result of a world tool is what its activity returned, unless the entry carries an error of the session's own. */
function checkToolResult(entry: Entry, facts: HistoryFacts): string[] {
  const { turn, step } = entry.data;
  if (entry.surfaceOp !== "append") return [];
  const block = (entry.data["message"] as { content: Block[] }).content[0];
  const runs = facts.activities.filter(
    (activity) =>
      activity.type === "tool.run" &&
      activity.input["claim"] === `${String(turn)}.${String(step)}.${block?.callId ?? ""}`,
  );
  if (runs.length === 0 || entry.data["error"] !== undefined) return [];
  const matches = runs.some((run) => {
    const outcome = run.result as { content?: Block[]; isError?: boolean } | undefined;
    return (
      canonical(outcome?.content) === canonical(block?.content) &&
      outcome?.isError === block?.isError
    );
  });
  return matches
    ? []
    : [`entry ${entry.seq}: no run of ${block?.callId ?? "?"} returned this result`];
}

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly callId?: string;
  readonly content?: readonly Block[];
  readonly isError?: boolean;
}

function textOf(content: readonly Block[]): string {
  return content.map((block) => block.text ?? "").join("");
}

function attributes(event: HistoryEvent, name: string): Attributes | undefined {
  return event[`${name}EventAttributes`] as Attributes | undefined;
}

/** A signal may carry one message or an array of them; whatever else came was refused. */
function messagesOf(payloads: unknown): { id: string; content: string }[] {
  return decode(payloads)
    .flat()
    .filter(
      (sent): sent is { id: string; content: string } => typeof sent === "object" && sent !== null,
    );
}

function decode(payloads: unknown): unknown[] {
  const list = (payloads as { payloads?: { data?: string }[] } | undefined)?.payloads ?? [];
  return list.map((payload) => {
    const text = Buffer.from(payload.data ?? "", "base64").toString("utf8");
    return text === "" ? undefined : (JSON.parse(text) as unknown);
  });
}
