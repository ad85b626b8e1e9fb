import type { WatchEvent } from "../../client/types.js";
import type { TextBlock, UserMessage } from "../../contracts/content.js";
import type { EntryOf, LogEntry } from "../../contracts/log.js";
import { resultCard, runningLine, type ToolCall } from "./card.js";
import { clean, Cleaner, oneLine } from "./clean.js";
import { reminderLine } from "./reminders.js";
import { isReplacement, noteOf } from "./notes.js";
import { Page } from "./page.js";
import { fit, glyphsOf, styled, type Style, type Terminal } from "./terminal.js";
import { todoLines } from "./todos.js";
import { wholeLine } from "./wrap.js";

export interface TranscriptOptions {
  /** Print the user's messages too (default true). */
  readonly showUser?: boolean;
  /** Gets the line about calls under way, empty for none, where something else than the transcript shows it. */
  readonly status?: (line: string) => void;
  /** What a card is opened by, shown at its end. */
  readonly cardMark?: (entry: EntryOf<"tool/result">) => string;
}

/**
 * Prints a session as it happens. Streamed text appears as it comes; the entry that holds the whole message then adds
 * only what was not printed. It takes no input and ends with `end()`.
 */
export class Transcript {
  readonly #page: Page;
  readonly #terminal: Terminal;
  readonly #options: TranscriptOptions;
  readonly #calls = new Map<string, ToolCall>();
  #cleaner = new Cleaner();
  #step = "";
  /** What of `#step` was printed, as it came. */
  #shown = "";
  /** What its execution has streamed; behind `#shown` while a lost worker's call runs again. */
  #streamed = "";
  #todos = "";

  constructor(write: (text: string) => void, terminal: Terminal, options: TranscriptOptions = {}) {
    this.#page = new Page(write, terminal);
    this.#terminal = terminal;
    this.#options = options;
  }

  event(event: WatchEvent): void {
    switch (event.type) {
      case "entry":
        return this.#entry(event.entry);
      case "delta":
        return event.kind === "text"
          ? this.#stream(`${event.turn}.${event.step}`, event.text)
          : undefined;
      case "restart":
        this.#streamed = "";
        return;
      case "state":
        return event.state === "faulted"
          ? this.#line("red", "the session is faulted: it takes no more turns")
          : undefined;
      case "session/jobs":
        return;
      case "connection":
        return this.#line("dim", event.up ? "it goes on" : `waiting: ${oneLine(event.message)}`);
    }
  }

  /** Lines that are not the session's, set apart; clean, but for colours. */
  notice(lines: readonly string[], kind: "note" | "block" = "note"): void {
    this.#page.lines(kind, lines);
    this.#showRunning();
  }

  /** Ends an open line and takes the running line away. */
  end(): void {
    this.#page.end();
  }

  #entry(entry: LogEntry): void {
    if (isReplacement(entry)) return;
    switch (entry.type) {
      case "user/message":
        return this.#user(entry.data.message);
      case "assistant/message":
        return this.#assistant(entry);
      case "tool/call":
        this.#calls.set(entry.data.callId, entry.data);
        return this.#showRunning();
      case "tool/result":
        return this.#result(entry);
      case "todo/write":
        return this.#todo(entry);
      case "turn/end":
        this.#calls.clear();
        this.#showRunning();
        return this.#note(entry);
      case "llm/retry":
        this.#drop("what came so far is dropped");
        return this.#note(entry);
      default:
        return this.#note(entry);
    }
  }

  #note(entry: LogEntry): void {
    const note = noteOf(entry);
    if (note !== undefined) this.#line(note.style, note.text);
  }

  /** Never cut: the end of an error is its cure. */
  #line(style: Style, text: string): void {
    const rows = wholeLine(text, this.#terminal).map((row) => styled(this.#terminal, style, row));
    this.#page.lines("note", rows);
    this.#showRunning();
  }

  #user(message: UserMessage): void {
    const text = clean(
      message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n"),
    ).trimEnd();
    if (message.source.kind !== "user")
      return this.#line(
        "dim",
        this.#cut(
          oneLine(reminderLine(message.source, text) ?? `[${message.source.kind}] ${text}`),
        ),
      );
    if (this.#options.showUser === false) return;
    this.#page.lines(
      "user",
      text.split("\n").map((line) => styled(this.#terminal, "bold", `> ${line}`)),
    );
  }

  #cut(text: string): string {
    return fit(text, this.#terminal.columns, glyphsOf(this.#terminal).ellipsis);
  }

  /** Prints what is new: an execution that says again what was printed adds nothing until it goes beyond. */
  #stream(step: string, text: string): void {
    if (step !== this.#step) this.#begin(step);
    const level = this.#streamed.length === this.#shown.length;
    this.#streamed += text;
    if (level || this.#streamed.startsWith(this.#shown)) {
      this.#page.text(this.#cleaner.push(this.#streamed.slice(this.#shown.length)));
    } else if (this.#shown.startsWith(this.#streamed)) {
      return;
    } else {
      this.#retell("this step ran again and says something else");
    }
    this.#shown = this.#streamed;
  }

  #begin(step: string): void {
    this.#step = step;
    this.#streamed = "";
    this.#shown = "";
    this.#cleaner = new Cleaner();
  }

  /** Says that what was printed does not count, and forgets it. */
  #drop(why: string): void {
    const printed = this.#shown.trim() !== "";
    this.#begin("");
    if (printed) this.#line("dim", `(${why})`);
  }

  #retell(why: string): void {
    const [step, text] = [this.#step, this.#streamed];
    this.#drop(why);
    this.#begin(step);
    this.#streamed = text;
    this.#page.text(this.#cleaner.push(text));
  }

  #assistant({ data }: EntryOf<"assistant/message">): void {
    const text = data.message.content
      .filter((block): block is TextBlock => block.type === "text")
      .map((block) => block.text)
      .join("");
    const step = `${data.turn}.${data.step}`;
    if (step !== this.#step) this.#begin(step);
    if (text.startsWith(this.#shown)) {
      this.#streamed = this.#shown;
      this.#stream(step, text.slice(this.#shown.length));
    } else {
      this.#streamed = text;
      this.#retell("the reply as it is kept:");
    }
    this.#page.text(this.#cleaner.end());
    this.#page.closeText();
    this.#begin("");
    if (data.interrupted === true) this.#line("dim", "(interrupted)");
  }

  #result(entry: EntryOf<"tool/result">): void {
    const { data } = entry;
    const block = data.message.content.find((one) => one.type === "tool-result");
    const callId = block?.type === "tool-result" ? block.callId : "";
    const call = this.#calls.get(callId) ?? { name: "tool", arguments: "" };
    this.#calls.delete(callId);
    const failed = data.error !== undefined || (block?.type === "tool-result" && block.isError);
    // The list itself was printed when it was written.
    if (call.name !== "todo_write" || failed)
      this.#page.lines(
        "card",
        resultCard(call, data, this.#terminal, this.#options.cardMark?.(entry)),
      );
    this.#showRunning();
  }

  #todo({ data }: EntryOf<"todo/write">): void {
    const todos = JSON.stringify(data.todos);
    if (todos === this.#todos) return;
    this.#todos = todos;
    this.#page.lines("block", todoLines(data.todos, this.#terminal));
    this.#showRunning();
  }

  #showRunning(): void {
    const running = [...this.#calls.values()].filter((call) => call.name !== "todo_write");
    const line = runningLine(running, this.#terminal);
    if (this.#options.status === undefined) this.#page.status(line);
    else this.#options.status(line);
  }
}
