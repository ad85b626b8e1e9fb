import type { Key } from "./keys.js";
import type { History } from "./history.js";

/** A text of any number of lines with a cursor, edited by keys. It draws nothing. */
export class Editor {
  readonly #history: History;
  #text = "";
  /** Position in `#text`, always between two characters as a person sees them. */
  #cursor = 0;

  constructor(history: History) {
    this.#history = history;
  }

  get text(): string {
    return this.#text;
  }

  get cursor(): number {
    return this.#cursor;
  }

  set(text: string): void {
    this.#text = text;
    this.#cursor = text.length;
  }

  /** Does what the key says; the text when it was finished with Enter, which empties the editor. */
  key(key: Key): string | undefined {
    switch (key.type) {
      case "text":
      case "paste":
        this.#insert(key.text);
        break;
      case "enter":
        return this.#enter();
      case "newline":
        this.#insert("\n");
        break;
      case "backspace":
        this.#remove(this.#left(), this.#cursor);
        break;
      case "delete":
        this.#remove(this.#cursor, this.#right());
        break;
      case "delete-word":
        this.#remove(this.#wordLeft(), this.#cursor);
        break;
      case "delete-to-start":
        this.#remove(this.#lineStart(), this.#cursor);
        break;
      case "delete-to-end":
        this.#remove(this.#cursor, this.#lineEnd());
        break;
      case "left":
        this.#cursor = this.#left();
        break;
      case "right":
        this.#cursor = this.#right();
        break;
      case "word-left":
        this.#cursor = this.#wordLeft();
        break;
      case "word-right":
        this.#cursor = this.#wordRight();
        break;
      case "home":
        this.#cursor = this.#lineStart();
        break;
      case "end":
        this.#cursor = this.#lineEnd();
        break;
      case "up":
        this.#up();
        break;
      case "down":
        this.#down();
        break;
      default:
        break;
    }
    return undefined;
  }

  /** A backslash before Enter asks for another line. */
  #enter(): string | undefined {
    const text = this.#text;
    if (text[this.#cursor - 1] === "\\") {
      this.#remove(this.#cursor - 1, this.#cursor);
      this.#insert("\n");
      return undefined;
    }
    if (text.trim() === "") return undefined;
    this.set("");
    this.#history.add(text);
    return text;
  }

  #insert(text: string): void {
    this.#text = this.#text.slice(0, this.#cursor) + text + this.#text.slice(this.#cursor);
    this.#cursor += text.length;
  }

  #remove(from: number, to: number): void {
    this.#text = this.#text.slice(0, from) + this.#text.slice(to);
    this.#cursor = from;
  }

  #left(): number {
    const from = this.#lineStart();
    if (from === this.#cursor) return Math.max(0, from - 1);
    return from + (starts(this.#text.slice(from, this.#cursor)).at(-1) ?? 0);
  }

  #right(): number {
    const to = this.#lineEnd();
    if (to === this.#cursor) return Math.min(this.#text.length, to + 1);
    return this.#cursor + (starts(this.#text.slice(this.#cursor, to))[1] ?? to - this.#cursor);
  }

  #wordLeft(): number {
    return /\S*\s*$/.exec(this.#text.slice(0, this.#cursor))?.index ?? 0;
  }

  #wordRight(): number {
    return this.#cursor + (/^\s*\S*/.exec(this.#text.slice(this.#cursor))?.[0].length ?? 0);
  }

  #lineStart(): number {
    return this.#text.lastIndexOf("\n", this.#cursor - 1) + 1;
  }

  #lineEnd(): number {
    const end = this.#text.indexOf("\n", this.#cursor);
    return end < 0 ? this.#text.length : end;
  }

  /** The line above; from the first line the entry before in the history. */
  #up(): void {
    const start = this.#lineStart();
    if (start > 0) return this.#toLine(this.#text.lastIndexOf("\n", start - 2) + 1, start - 1);
    const older = this.#history.older(this.#text);
    if (older !== undefined) this.set(older);
  }

  #down(): void {
    const end = this.#lineEnd();
    if (end < this.#text.length) {
      const next = this.#text.indexOf("\n", end + 1);
      return this.#toLine(end + 1, next < 0 ? this.#text.length : next);
    }
    const newer = this.#history.newer();
    if (newer !== undefined) this.set(newer);
  }

  /** To the same place, counted in characters, of another line. */
  #toLine(from: number, to: number): void {
    const place = starts(this.#text.slice(this.#lineStart(), this.#cursor)).length;
    this.#cursor = from + (starts(this.#text.slice(from, to))[place] ?? to - from);
  }
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Where the characters of a text begin. */
function starts(text: string): readonly number[] {
  return Array.from(graphemes.segment(text), ({ index }) => index);
}
