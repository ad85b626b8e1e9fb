/**
 * The independent witness: says from an exported session log alone which requests the model must have been shown
 * (docs/spec/harness.md §§1, 2, 4). It shares no code and no types with src (lint refuses the import), so a mistake
 * there cannot excuse itself here.
 */
export interface WitnessedRequest {
  readonly turn: number;
  readonly step: number;
  /** How often the request was already retried after a provider failure, from 0. */
  readonly retry: number;
  readonly config: unknown;
  readonly system?: string;
  readonly tools: readonly unknown[];
  readonly messages: readonly unknown[];
  /** `seq` of the header entry in force. */
  readonly headerSeq: number;
  /** Number of surface nodes, dropped empty messages included. */
  readonly nodes: number;
  /**
   * What the log says came of it. `reply`, `retry` and `overflow` prove that the model was asked; `ended` (the step closed
   * without an answer) and `open` (the log stops here) leave it open whether the request went out.
   */
  readonly outcome: "reply" | "retry" | "overflow" | "ended" | "open";
}

export interface Entry {
  readonly type: string;
  readonly seq: number;
  readonly data: Record<string, unknown>;
  readonly surfaceOp?:
    | "append"
    | { readonly op: "replace"; readonly start: number; readonly end: number };
  readonly sourceEventSeqs?: readonly number[];
}

interface Node {
  readonly seq: number;
  readonly message: { readonly role: string; readonly content: readonly unknown[] };
}

interface OpenStep {
  readonly turn: number;
  readonly step: number;
  retry: number;
  answered: boolean;
  /** Its request was too large and the transcript is being shortened; asked again once something was replaced. */
  recovering?: boolean;
}

/** Rebuilds the request of every (turn, step, retry) of a log. Throws on a log that contradicts itself. */
export function witnessRequests(log: readonly unknown[]): WitnessedRequest[] {
  const requests: WitnessedRequest[] = [];
  const surface: Node[] = [];
  let header: Entry | undefined;
  let open: OpenStep | undefined;

  const close = (outcome: WitnessedRequest["outcome"]) => {
    if (open === undefined || open.answered) return;
    open.answered = true;
    if (header === undefined) {
      if (proves(outcome)) {
        throw new Error(
          `turn ${open.turn} step ${open.step}: an answer, but no request/header before it`,
        );
      }
      return;
    }
    const { turn, step, retry } = open;
    requests.push({ turn, step, retry, ...requestParts(header, surface), outcome });
  };

  for (const [index, raw] of log.entries()) {
    const entry = raw as Entry;
    if (entry.seq !== index) throw new Error(`entry ${index} of the log has seq ${entry.seq}`);
    switch (entry.type) {
      case "step/start":
        if (open !== undefined) throw new Error(`entry ${index}: a step starts inside another`);
        open = { ...position(entry), retry: 0, answered: false };
        break;
      case "request/header":
        header = entry;
        break;
      case "compaction/prune":
      case "compaction/start":
        // Within a step it follows a request that was too large (spec §6).
        if (open === undefined || open.answered || open.recovering === true) break;
        close("overflow");
        open = { ...open, recovering: true };
        break;
      case "assistant/message":
        if (open === undefined || open.answered || !samePosition(open, entry)) {
          throw new Error(`entry ${index}: an assistant message that answers no open request`);
        }
        close("reply");
        break;
      case "llm/retry":
        if (open === undefined || open.answered || !samePosition(open, entry)) {
          throw new Error(`entry ${index}: a retry of no open request`);
        }
        close("retry");
        break;
      case "llm/retry-started":
        if (open === undefined || !open.answered || !samePosition(open, entry)) {
          throw new Error(`entry ${index}: a retry starts while no request waits for one`);
        }
        open = { ...open, retry: open.retry + 1, answered: false };
        break;
      case "step/end":
        close("ended");
        open = undefined;
        break;
    }
    place(surface, entry);
    const replaced = entry.surfaceOp !== undefined && entry.surfaceOp !== "append";
    if (replaced && open?.recovering === true && open.answered)
      open = { ...open, retry: open.retry + 1, answered: false };
  }
  close("open");
  return requests;
}

/** Applies an entry's `surfaceOp` (spec §1): append, or replace of the positions start..end-1, all of them cited. */
function place(surface: Node[], entry: Entry): void {
  const producing = ["user/message", "assistant/message", "tool/result"].includes(entry.type);
  if (producing !== (entry.surfaceOp !== undefined)) {
    throw new Error(
      `entry ${entry.seq}: ${entry.type} ${producing ? "without" : "with"} a surfaceOp`,
    );
  }
  if (entry.surfaceOp === undefined) return;
  const node: Node = { seq: entry.seq, message: entry.data["message"] as Node["message"] };
  if (entry.surfaceOp === "append") {
    surface.push(node);
    return;
  }
  const { start, end } = entry.surfaceOp;
  if (!(start >= 0 && start < end && end <= surface.length)) {
    throw new Error(`entry ${entry.seq}: replace ${start}..${end} of ${surface.length} nodes`);
  }
  const cited = entry.sourceEventSeqs ?? [];
  for (const shadowed of surface.slice(start, end)) {
    if (!cited.includes(shadowed.seq)) {
      throw new Error(`entry ${entry.seq}: replaces entry ${shadowed.seq} without citing it`);
    }
  }
  surface.splice(start, end - start, node);
}

/** A recorded request as a scripted model writes it, one JSON object a line. */
export interface RecordedRequest {
  readonly turn: number;
  readonly step: number;
  readonly retry: number;
  readonly config: unknown;
  readonly system?: string;
  readonly tools?: readonly unknown[];
  readonly messages: readonly unknown[];
  readonly summary?: true;
}

/** A request for the summary of a compaction that came to its end (docs/spec/harness.md §6). */
interface WitnessedSummary {
  readonly id: string;
  readonly parts: ReturnType<typeof requestParts>;
}

/** Every summary in a log, and the surface nodes it stands for as they were when its bracket opened. */
export function witnessSummaries(log: readonly unknown[]): WitnessedSummary[] {
  const surface: Node[] = [];
  const summaries: WitnessedSummary[] = [];
  let header: Entry | undefined;
  for (const entry of log as readonly Entry[]) {
    if (entry.type === "request/header") header = entry;
    if (entry.type === "compaction/summary" && header !== undefined) {
      const length = (entry.data["shadowedSeqs"] as readonly unknown[]).length;
      const id = String(entry.data["compactionId"]);
      summaries.push({ id, parts: requestParts(header, surface.slice(0, length)) });
    }
    place(surface, entry);
  }
  return summaries;
}

/** What the log says was summarised was shown to the model whole, in the same words, and then what is wanted of it. */
export function compareSummaries(
  witnessed: readonly WitnessedSummary[],
  recorded: readonly RecordedRequest[],
): string[] {
  const asked = recorded.filter((one) => one.summary === true);
  return witnessed.flatMap(({ id, parts }) => {
    const shown = asked.some(
      ({ system, tools, messages }) =>
        canonical(system ?? []) === canonical(parts.system ?? []) &&
        canonical(tools ?? []) === canonical(parts.tools) &&
        messages.length === parts.messages.length + 1 &&
        canonical(messages.slice(0, -1)) === canonical(parts.messages),
    );
    return shown ? [] : [`${id}: the model was never asked for this summary`];
  });
}

/**
 * Differences between what the log says and what a model was shown; empty when they agree. A request may be recorded
 * more than once (a lost worker's call runs again), but every record must be the one the log says.
 */
export function compareRequests(
  witnessed: readonly WitnessedRequest[],
  recorded: readonly RecordedRequest[],
): string[] {
  const differences: string[] = [];
  const seen = new Set<WitnessedRequest>();
  for (const record of recorded) {
    // Requests for a summary have a witness of their own.
    if (record.summary === true) continue;
    const name = nameOf(record);
    const expected = witnessed.find((request) => nameOf(request) === name);
    if (expected === undefined) {
      differences.push(`${name}: the model was called, the log has no such request`);
      continue;
    }
    seen.add(expected);
    for (const part of ["config", "system", "tools"] as const) {
      const before = canonical(expected[part] ?? []);
      const after = canonical(record[part] ?? []);
      if (before !== after)
        differences.push(`${name}: ${part} is ${after}, the log says ${before}`);
    }
    differences.push(...compareMessages(name, expected.messages, record.messages));
  }
  for (const request of witnessed) {
    if (proves(request.outcome) && !seen.has(request)) {
      differences.push(`${nameOf(request)}: the log has an answer, the model was never called`);
    }
  }
  return differences;
}

/** The requests in a scripted model's NDJSON record, of one session. */
export function readRecorded(ndjson: string, sessionId: string): RecordedRequest[] {
  return ndjson
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as RecordedRequest & { sessionId: string })
    .filter((request) => request.sessionId === sessionId);
}

/** JSON with sorted keys: two values are the same to the model when these are equal. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(",")}}`;
}

function requestParts(header: Entry, surface: readonly Node[]) {
  const logged = header.data["header"] as { config: unknown; system?: string; tools?: unknown[] };
  const messages = surface
    .map((node) => node.message)
    .filter((message) => message.role !== "assistant" || message.content.length > 0);
  return {
    config: logged.config,
    ...(logged.system === undefined ? {} : { system: logged.system }),
    tools: logged.tools ?? [],
    messages,
    headerSeq: header.seq,
    nodes: surface.length,
  };
}

function compareMessages(
  name: string,
  expected: readonly unknown[],
  recorded: readonly unknown[],
): string[] {
  const differences: string[] = [];
  if (expected.length !== recorded.length) {
    differences.push(`${name}: ${recorded.length} messages, the log says ${expected.length}`);
  }
  for (let i = 0; i < Math.min(expected.length, recorded.length); i++) {
    const [before, after] = [canonical(expected[i]), canonical(recorded[i])];
    if (before !== after) {
      differences.push(`${name}: message ${i} is ${after}, the log says ${before}`);
    }
  }
  return differences;
}

function proves(outcome: WitnessedRequest["outcome"]): boolean {
  return outcome === "reply" || outcome === "retry" || outcome === "overflow";
}

function nameOf(at: { readonly turn: number; readonly step: number; readonly retry: number }) {
  return `request ${at.turn}.${at.step} retry ${at.retry}`;
}

function position(entry: Entry): { readonly turn: number; readonly step: number } {
  const { turn, step } = entry.data;
  if (typeof turn !== "number" || typeof step !== "number") {
    throw new Error(`entry ${entry.seq}: ${entry.type} without turn and step`);
  }
  return { turn, step };
}

function samePosition(open: OpenStep, entry: Entry): boolean {
  const at = position(entry);
  return at.turn === open.turn && at.step === open.step;
}
