/* oxlint-disable no-control-regex -- a terminal speaks in control characters */
import { clean } from "../render/clean.js";

/** What a person did on the keyboard. */
export type Key =
  /** Typed characters; `paste` may hold newlines. */
  { readonly type: "text" | "paste"; readonly text: string } | { readonly type: KeyName };

export type KeyName =
  | "enter"
  | "newline"
  | "backspace"
  | "delete"
  | "delete-word"
  | "delete-to-start"
  | "delete-to-end"
  | "left"
  | "right"
  | "word-left"
  | "word-right"
  | "up"
  | "down"
  | "home"
  | "end"
  | "escape"
  | "interrupt"
  | "end-of-input"
  | "open"
  | "redraw";

const pasteEnd = "\u001b[201~";

/** Reads the bytes of a terminal, already decoded, into keys. A sequence may be cut anywhere. */
export class KeyReader {
  #rest = "";
  #paste: string | undefined;

  push(text: string): readonly Key[] {
    const keys: Key[] = [];
    this.#rest += text;
    while (this.#rest !== "") {
      const key = this.#paste === undefined ? this.#next() : this.#pasted(this.#paste);
      if (key === "wait") break;
      if (key !== "none") keys.push(key);
    }
    return keys;
  }

  /** A sequence was begun; without more input soon it was the Escape key alone. */
  get waiting(): boolean {
    return this.#paste === undefined && this.#rest !== "";
  }

  /** No more input came. */
  flush(): readonly Key[] {
    if (!this.waiting) return [];
    this.#rest = "";
    return [{ type: "escape" }];
  }

  #next(): Key | "none" | "wait" {
    const control = /^(?:\u001b\[[\d;?<>=]*[A-Za-z~^$@]|\u001bO[A-Za-z]|\u001b\r\n?)/.exec(
      this.#rest,
    );
    if (control !== null) {
      this.#rest = this.#rest.slice(control[0].length);
      return this.#sequence(control[0].slice(1));
    }
    if (/^\u001b(?:\[[\d;?<>=]*|O)?$/.test(this.#rest)) return "wait";
    if (this.#rest.startsWith("\u001b")) {
      const [, second = ""] = this.#rest;
      this.#rest = this.#rest.slice(1 + second.length);
      return named(escaped[second]);
    }
    const typed = /^[^\u0000-\u001f\u007f]+/.exec(this.#rest)?.[0];
    if (typed !== undefined) {
      this.#rest = this.#rest.slice(typed.length);
      const text = clean(typed);
      return text === "" ? "none" : { type: "text", text };
    }
    const [first = ""] = this.#rest;
    this.#rest = this.#rest.slice(first.length);
    return named(controls[first]);
  }

  #sequence(code: string): Key | "none" {
    if (code === "[200~") {
      this.#paste = "";
      return "none";
    }
    return named(sequences[code]);
  }

  #pasted(before: string): Key | "none" | "wait" {
    const text = before + this.#rest;
    const end = text.indexOf(pasteEnd);
    if (end < 0) {
      this.#paste = text;
      this.#rest = "";
      return "wait";
    }
    this.#paste = undefined;
    this.#rest = text.slice(end + pasteEnd.length);
    const pasted = clean(text.slice(0, end).replaceAll(/\r\n?/g, "\n"));
    return pasted === "" ? "none" : { type: "paste", text: pasted };
  }
}

function named(name: KeyName | undefined): Key | "none" {
  return name === undefined ? "none" : { type: name };
}

const controls: Readonly<Record<string, KeyName>> = {
  "\r": "enter",
  "\n": "newline",
  "\b": "backspace",
  "\u007f": "backspace",
  "\u0001": "home",
  "\u0002": "left",
  "\u0003": "interrupt",
  "\u0004": "end-of-input",
  "\u0005": "end",
  "\u0006": "right",
  "\u000b": "delete-to-end",
  "\u000c": "redraw",
  "\u000e": "down",
  "\u000f": "open",
  "\u0010": "up",
  "\u0015": "delete-to-start",
  "\u0017": "delete-word",
};

/** After ESC: Alt with a key. */
const escaped: Readonly<Record<string, KeyName>> = {
  "\r": "newline",
  "\n": "newline",
  "\u007f": "delete-word",
  "\b": "delete-word",
  b: "word-left",
  f: "word-right",
};

const sequences: Readonly<Record<string, KeyName>> = {
  "\r": "newline",
  "\r\n": "newline",
  "[A": "up",
  "[B": "down",
  "[C": "right",
  "[D": "left",
  OA: "up",
  OB: "down",
  OC: "right",
  OD: "left",
  "[H": "home",
  "[F": "end",
  OH: "home",
  OF: "end",
  "[1~": "home",
  "[7~": "home",
  "[4~": "end",
  "[8~": "end",
  "[3~": "delete",
  "[1;5C": "word-right",
  "[1;5D": "word-left",
  "[1;3C": "word-right",
  "[1;3D": "word-left",
  // Shift and Alt with Enter, where a terminal tells them apart.
  "[13;2u": "newline",
  "[13;3u": "newline",
  "[27;2;13~": "newline",
  "[27;3;13~": "newline",
};
