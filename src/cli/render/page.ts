import type { Terminal } from "./terminal.js";

type Block = "none" | "text" | "user" | "card" | "block" | "note";

/** Kinds that are set apart from one of their own kind too. */
const apart: ReadonlySet<Block> = new Set(["text", "block"]);

/** Knows where the cursor is: blocks of a different kind are set apart, open lines are ended, a status line comes and goes. */
export class Page {
  readonly #write: (text: string) => void;
  readonly #live: boolean;
  #block: Block = "none";
  #lineOpen = false;
  /** Newlines at the end of streamed text wait until more text follows. */
  #held = "";
  #status = "";

  constructor(write: (text: string) => void, terminal: Terminal) {
    this.#write = write;
    this.#live = terminal.live;
  }

  /** Whole lines, already cut or wrapped to the width, if there is one. */
  lines(block: Block, lines: readonly string[]): void {
    this.#open(block);
    for (const line of lines) this.#write(`${line}\n`);
  }

  /** A piece of streamed text, already clean. */
  text(piece: string): void {
    let text = this.#held + piece;
    if (!this.#lineOpen) {
      // A reply that begins with blank lines, or has nothing else, takes no room.
      text = text.replace(/^(?:[ \t]*\n)+/, "");
      if (text.trim() === "") {
        this.#held = text;
        return;
      }
    }
    const body = text.replace(/\n+$/, "");
    if (body !== "") {
      if (!this.#lineOpen) this.#open("text");
      this.#write(body);
      this.#lineOpen = true;
    }
    this.#held = text.slice(body.length);
  }

  closeText(): void {
    this.#held = "";
    if (this.#lineOpen) this.#write("\n");
    this.#lineOpen = false;
  }

  /** The line under everything, replaced by the next output; only where lines can be rewritten. */
  status(line: string): void {
    if (!this.#live || this.#lineOpen || line === this.#status) return;
    this.#clearStatus();
    this.#write(line);
    this.#status = line;
  }

  end(): void {
    this.#clearStatus();
    this.closeText();
  }

  #open(block: Block): void {
    this.#clearStatus();
    this.closeText();
    if (this.#block !== "none" && (this.#block !== block || apart.has(block))) this.#write("\n");
    this.#block = block;
  }

  #clearStatus(): void {
    if (this.#status !== "") this.#write("\r\u001b[2K");
    this.#status = "";
  }
}
