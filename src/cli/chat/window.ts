import { setTimeout as delay } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import type { WatchEvent } from "../../client/types.js";
import type { LogEntry } from "../../contracts/log.js";
import type { Session } from "../backend.js";
import { outcomeText } from "../commands/compact.js";
import { follow, type Following } from "../commands/follow.js";
import { failureText } from "../failure.js";
import { aborted, type Io } from "../io.js";
import { oneLine } from "../render/clean.js";
import { styled, terminalOf, type Terminal } from "../render/terminal.js";
import { todoLines } from "../render/todos.js";
import { Transcript } from "../render/transcript.js";
import { Cards } from "./cards.js";
import type { Editor } from "./editor.js";
import { viewOf } from "./editor-view.js";
import { footerLines } from "./footer.js";
import { readKeys } from "./keyboard.js";
import type { Key } from "./keys.js";
import { Outbox } from "./outbox.js";
import { Screen } from "./screen.js";
import { catchUp } from "./seen.js";
import { Situation } from "./situation.js";
import { chatHelp, parseSlash } from "./slash.js";
import { takeTerminal } from "./take-terminal.js";

/** Time in which a second Ctrl-C leaves. */
const secondMs = 2_000;
/** Longest that leaving waits for the session to take what was asked of it last. */
const partingMs = 2_000;

export interface ChatOptions {
  readonly session: Session;
  readonly home: string;
  /** Lines above the transcript. */
  readonly head: readonly string[];
  /** Said when the user leaves; the session stays. */
  readonly farewell: readonly string[];
  /** Rejects when the worker of this process fails. */
  readonly lost: Promise<never>;
}

/** One session on a terminal: the transcript above, what the session is at and the prompt below. */
export class ChatWindow {
  readonly #io: Io;
  readonly #options: ChatOptions;
  readonly #session: Session;
  readonly #editor: Editor;
  readonly #screen: Screen;
  readonly #terminal: Terminal;
  readonly #transcript: Transcript;
  readonly #situation = new Situation();
  readonly #cards = new Cards();
  readonly #outbox: Outbox;
  #following: Following | undefined;
  #calls = "";
  #interrupted = false;
  #compacting = false;
  #interruptedAt = -Infinity;
  /** The last interrupt or cancel under way. */
  #ending: Promise<void> = Promise.resolve();
  #said = false;
  #leave: () => void = () => {};
  #fail: (error: unknown) => void = () => {};
  /** Resolves when the user leaves or the session is closed. */
  readonly left: Promise<void>;

  constructor(io: Io, options: ChatOptions, editor: Editor) {
    this.#io = io;
    this.#options = options;
    this.#session = options.session;
    this.#editor = editor;
    const { color, unicode } = terminalOf(io.stdout, io.env);
    this.#terminal = {
      color,
      unicode,
      live: false,
      get columns() {
        return terminalOf(io.stdout, io.env).columns;
      },
    };
    const size = () => ({ columns: this.#terminal.columns, rows: io.stdout.rows ?? 24 });
    this.#screen = new Screen((text) => io.stdout.write(text), size);
    this.#transcript = new Transcript((text) => this.#screen.print(text), this.#terminal, {
      status: (line) => {
        this.#calls = stripVTControlCharacters(line);
      },
      cardMark: () => `[${this.#cards.last}]`,
    });
    this.#outbox = new Outbox(options.session, {
      changed: () => this.#draw(),
      refused: (message, error) => {
        this.#failed(error, `not sent: ${oneLine(message.text)}`);
      },
    });
    this.left = new Promise((resolve, reject) => {
      this.#leave = resolve;
      this.#fail = reject;
    });
    this.left.catch(() => undefined);
  }

  get seq(): number {
    return this.#situation.seq;
  }

  /** Takes the terminal over; what is returned gives it back. */
  open(): () => void {
    readKeys(this.#io.stdin, (keys) => {
      for (const key of keys) this.#key(key);
      this.#draw();
    }).then(
      () => this.#leave(),
      (error: unknown) => this.#fail(error),
    );
    return takeTerminal(this.#io, {
      resized: () => {
        this.#draw();
        this.#screen.resized();
      },
      errors: (text) => this.#notice(text.trimEnd().split("\n")),
    });
  }

  /** Shows what was said before, and from then on what happens. */
  async comeIn(seen: number | undefined): Promise<void> {
    for (const line of this.#options.head)
      this.#screen.print(`${styled(this.#terminal, "dim", line)}\n`);
    this.#draw();
    const entries: LogEntry[] = [];
    const reading = (async () => {
      for await (const entry of this.#session.log()) entries.push(entry);
    })();
    reading.catch(() => undefined);
    await Promise.race([reading, this.left, aborted(this.#io.stop), this.#options.lost]);
    const { from, earlierTurns, fresh } = catchUp(entries, seen);
    if (earlierTurns > 0)
      this.#notice([
        `${earlierTurns} earlier turn${earlierTurns === 1 ? "" : "s"}: longhaul log ${this.#session.id}`,
      ]);
    for (const [index, entry] of entries.entries()) {
      if (index === fresh) this.#notice(["since you left:"]);
      this.#entry(entry, index >= from);
    }
    if (this.#situation.todos.some((todo) => todo.status !== "completed"))
      this.#notice(todoLines(this.#situation.todos, this.#terminal), "plain");
    this.#draw();
    this.#following = follow(this.#session, (event) => this.#event(event), this.seq);
    this.#following.done.then(
      () => this.#leave(),
      (error: unknown) => this.#fail(error),
    );
  }

  async close(): Promise<void> {
    // What the user asked for last is to reach the session, but nobody waits long for one that is away.
    const told = Promise.all([this.#ending, this.#outbox.empty()]);
    if (!this.#io.stop.aborted) await Promise.race([told, delay(partingMs), this.#options.lost]);
    const unsent = this.#outbox.waiting;
    this.#outbox.stop();
    await this.#following?.stop();
    this.#transcript.end();
    for (const message of unsent) this.#notice([`perhaps not sent: ${oneLine(message.text)}`]);
    this.#screen.end();
    const lines = this.#situation.closed ? [] : this.#options.farewell;
    for (const line of lines) this.#io.stdout.write(`${styled(this.#terminal, "dim", line)}\n`);
  }

  #key(key: Key): void {
    switch (key.type) {
      case "interrupt":
        return this.#ctrlC();
      case "end-of-input":
        return this.#editor.text === "" ? this.#leave() : void this.#editor.key({ type: "delete" });
      case "open":
        return this.#openCard(undefined);
      case "redraw":
        return this.#screen.clear();
      default: {
        const text = this.#editor.key(key);
        if (text !== undefined) this.#typed(text);
      }
    }
  }

  /** Interrupts what runs; with nothing to interrupt it empties the line, and leaves when that is empty. */
  #ctrlC(): void {
    const now = Date.now();
    if (now - this.#interruptedAt < secondMs) return this.#leave();
    if (this.#situation.running || this.#compacting) {
      this.#interruptedAt = now;
      return this.#interrupt();
    }
    if (this.#editor.text === "") return this.#leave();
    this.#editor.set("");
    this.#interruptedAt = now;
  }

  #interrupt(): void {
    this.#interrupted = true;
    this.#ending = this.#session.interrupt().then(
      ({ result }) => {
        if (result === "idle") this.#interrupted = false;
        this.#draw();
      },
      (error: unknown) => {
        this.#interrupted = false;
        this.#failed(error, "the turn was not interrupted");
      },
    );
  }

  #typed(text: string): void {
    const slash = parseSlash(text);
    switch (slash.type) {
      case "message":
        this.#said = true;
        return this.#outbox.add(slash.text, this.#situation.running ? "steer" : "followup");
      case "queue":
        this.#said = true;
        return this.#outbox.add(slash.text, "followup");
      case "help":
        return this.#notice(chatHelp, "plain");
      case "todo":
        return this.#notice(todoLines(this.#situation.todos, this.#terminal), "plain");
      case "open":
        return this.#openCard(slash.number);
      case "interrupt":
        return this.#situation.running || this.#compacting
          ? this.#interrupt()
          : this.#notice(["no turn is running"], "dim");
      case "cancel":
        this.#ending = this.#session.cancel().then(
          ({ removed }) =>
            this.#notice([`${removed} waiting message${removed === 1 ? "" : "s"} dropped`]),
          (error: unknown) => this.#failed(error, "nothing was cancelled"),
        );
        return;
      case "compact":
        return this.#compact();
      case "quit":
        return this.#leave();
      case "mistake":
        return this.#notice([slash.message], "red");
    }
  }

  #compact(): void {
    if (this.#compacting) return;
    this.#compacting = true;
    this.#session
      .compact()
      .then(
        (outcome) => {
          // Else the transcript has told.
          if (!outcome.changed && outcome.problem === undefined)
            this.#notice([outcomeText(outcome)]);
        },
        (error: unknown) => this.#failed(error, "the transcript was not compacted"),
      )
      .finally(() => {
        this.#compacting = false;
        this.#interrupted = false;
      });
  }

  #openCard(number: number | undefined): void {
    const wanted = number ?? this.#cards.last;
    const lines = this.#cards.open(wanted);
    if (lines !== undefined) return this.#notice(lines, "plain");
    const known =
      this.#cards.last === 0
        ? "no tool was called yet"
        : `calls are numbered 1 to ${this.#cards.last}`;
    this.#notice([number === undefined ? known : `there is no call ${number} to open: ${known}`]);
  }

  #event(event: WatchEvent): void {
    if (event.type === "entry") this.#entry(event.entry, true);
    else {
      this.#situation.event(event);
      // Where the connection stands is shown below, so that an answer under way is not cut in two.
      if (event.type !== "connection") this.#transcript.event(event);
    }
    this.#draw();
    if (this.#situation.closed && event.type === "entry") this.#leave();
  }

  #entry(entry: LogEntry, shown: boolean): void {
    this.#situation.event({ type: "entry", entry });
    this.#cards.entry(entry);
    if (entry.type === "turn/end") this.#interrupted = false;
    // A new turn has its own first Ctrl-C.
    if (entry.type === "turn/start") this.#interruptedAt = -Infinity;
    if (shown) this.#transcript.event({ type: "entry", entry });
  }

  #failed(error: unknown, what: string): void {
    const why = failureText(error, false)
      .trimEnd()
      .replace(/^error: /, "");
    this.#notice([`${what} (${why})`], "red");
  }

  #notice(lines: readonly string[], style: "dim" | "red" | "plain" = "dim"): void {
    if (style === "plain") this.#transcript.notice(lines, "block");
    else this.#transcript.notice(lines.map((line) => styled(this.#terminal, style, line)));
    this.#draw();
  }

  #draw(): void {
    const { columns } = this.#terminal;
    const facts = {
      situation: this.#situation,
      outbox: this.#outbox,
      calls: this.#calls,
      interrupted: this.#interrupted,
      fresh: !this.#said,
    };
    const above = footerLines(facts, this.#terminal);
    const rows = Math.max(3, Math.floor((this.#io.stdout.rows ?? 24) / 2));
    const { text, cursor } = this.#editor;
    const prompt = this.#terminal.unicode ? "❯ " : "> ";
    const view = viewOf(text, cursor, prompt, { columns, rows });
    this.#screen.setFooter({
      rows: ["", ...above, ...view.rows],
      row: 1 + above.length + view.row,
      column: view.column,
    });
  }
}
