import type { EventData, LogEntry } from "../../contracts/log.js";
import { clean, oneLine } from "../render/clean.js";
import { isReplacement } from "../render/notes.js";

const kept = 500;

interface Card {
  readonly call: EventData["tool/call"] | undefined;
  readonly result: EventData["tool/result"];
}

/** The tool calls of a session, numbered from 1 in the order of their results; the newest can be opened. */
export class Cards {
  readonly #calls = new Map<string, EventData["tool/call"]>();
  readonly #cards = new Map<number, Card>();
  #count = 0;

  /** Number of the last card; 0 before the first. */
  get last(): number {
    return this.#count;
  }

  entry(entry: LogEntry): void {
    if (entry.type === "tool/call") this.#calls.set(entry.data.callId, entry.data);
    if (entry.type === "turn/end") this.#calls.clear();
    // One that was shortened for the model is opened whole.
    if (entry.type !== "tool/result" || isReplacement(entry)) return;
    const block = entry.data.message.content.find((one) => one.type === "tool-result");
    if (block?.type !== "tool-result") return;
    const call = this.#calls.get(block.callId);
    // The list itself was printed when it was written.
    if (call?.name === "todo_write" && !block.isError) return;
    this.#count += 1;
    this.#cards.set(this.#count, { call, result: entry.data });
    this.#cards.delete(this.#count - kept);
  }

  /** Arguments and output of a call as clean lines; undefined when there is no such card. */
  open(number: number): readonly string[] | undefined {
    const card = this.#cards.get(number);
    if (card === undefined) return undefined;
    const output = card.result.message.content
      .flatMap((block) => (block.type === "tool-result" ? block.content : []))
      .map((part) => part.text)
      .join("\n");
    return [
      `[${number}] ${oneLine(card.call?.name ?? "tool")}`,
      ...argumentLines(card.call?.arguments ?? "").map((line) => `  ${line}`),
      ...clean(output === "" ? "(no output)" : output)
        .trimEnd()
        .split("\n")
        .map((line) => `  | ${line}`),
    ];
  }
}

function argumentLines(text: string): readonly string[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return clean(text).trimEnd().split("\n");
  }
  if (typeof value !== "object" || value === null) return [clean(text)];
  return Object.entries(value).flatMap(([name, one]: [string, unknown]) => {
    const [first = "", ...more] = clean(typeof one === "string" ? one : JSON.stringify(one))
      .trimEnd()
      .split("\n");
    return [`${oneLine(name)}: ${first}`, ...more.map((line) => `  ${line}`)];
  });
}
