import { RE2JS, RE2JSException } from "re2js";

import { LonghaulError } from "../contracts/errors.js";

/** One pattern in the words of both engines; they find the same lines. */
export interface LinePattern {
  /** For ripgrep (Rust's regex on bytes). */
  readonly rust: string;
  /** For re2js on text in which bytes that are no UTF-8 stand as `invalidByte`. */
  readonly re2: string;
}

/** Stands for what is no UTF-8, and no pattern matches it, as in ripgrep. */
export const invalidByte = "\uD800";

const maxLength = 1_000;
const maxProgram = 20_000;

/** Sets whose meaning differs between the engines, spelled out: ASCII in both. No \r: it may belong to a line's end. */
const shorthands: Readonly<Record<string, string>> = {
  d: "0-9",
  w: "0-9A-Za-z_",
  s: "\\t\\v\\f ",
};
const plainEscapes: Readonly<Record<string, number>> = { t: 9, v: 11, f: 12, r: 13, a: 7 };

/**
 * Reads the common part of RE2 and Rust's regex and writes it for either, so that a search does not depend on which one
 * runs it. Both take time linear in the text. A `{` that is no repetition is a plain character. Throws INVALID_ARGS.
 */
export function compileLinePattern(pattern: string, ignoreCase: boolean): LinePattern {
  if (pattern.length > maxLength)
    throw invalid(pattern, `it has ${pattern.length} characters, more than ${maxLength}`);
  if (/[\0\p{Surrogate}]/u.test(pattern)) throw invalid(pattern, "it is not plain text");
  const flag = ignoreCase ? "(?i)" : "";
  const rust = flag + new Translation(pattern, "rust").run();
  const re2 = flag + new Translation(pattern, "re2").run();
  try {
    const size = RE2JS.compile(re2).programSize();
    if (size > maxProgram) throw invalid(pattern, "its repetitions make it too large");
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    const reason = "error" in error ? String(error.error) : "it cannot be read";
    throw invalid(pattern, reason);
  }
  return { rust, re2 };
}

class Translation {
  private readonly chars: readonly string[];
  private readonly pattern: string;
  private readonly engine: "rust" | "re2";
  private at = 0;

  constructor(pattern: string, engine: "rust" | "re2") {
    this.pattern = pattern;
    this.engine = engine;
    this.chars = Array.from(pattern);
  }

  run(): string {
    let out = "";
    while (this.at < this.chars.length) out += this.next();
    return out;
  }

  private next(): string {
    const char = this.take();
    switch (char) {
      case ".":
        return this.not("");
      case "^":
        // A byte order mark before the first line is none of it.
        return "(?:^\\x{FEFF}?)";
      case "$":
        return "(?:\\r?$)";
      case "|":
      case ")":
      case "*":
      case "+":
      case "?":
        return char;
      case "(":
        return this.group();
      case "[":
        return this.set();
      case "{":
        return this.repetition();
      case "\\":
        return this.escape();
      case "\n":
        throw this.refuse("it has a line break, and lines are searched one by one");
      default:
        return literal(char);
    }
  }

  private take(): string {
    const char = this.chars[this.at] ?? "";
    this.at += 1;
    return char;
  }

  private group(): string {
    if (this.chars[this.at] !== "?") return "(";
    const rest = this.chars.slice(this.at, this.at + 80).join("");
    const flags = /^\?(?:P?<[A-Za-z_]\w*>|(-?[is]*(?:-[is]+)?)(:|\)))/.exec(rest);
    if (flags === null) {
      const what = /^\?<?[=!]/.test(rest) ? "look-around is" : "this kind of group is";
      throw this.refuse(`${what} not supported`);
    }
    this.at += flags[0].length;
    const [, set, end] = flags;
    if (set === undefined) return "(";
    // A line holds no line break, so `s` changes nothing.
    const kept = set.replaceAll("s", "").replace(/-$/, "");
    if (kept === "") return end === ":" ? "(?:" : "(?:)";
    return `(?${kept}${end}`;
  }

  private repetition(): string {
    const rest = this.chars.slice(this.at, this.at + 16).join("");
    const count = /^\d{1,4}(?:,\d{0,4})?\}/.exec(rest);
    if (count === null) return literal("{");
    this.at += count[0].length;
    return `{${count[0]}`;
  }

  private escape(): string {
    const char = this.take();
    const lower = char.toLowerCase();
    if (char === "b" || char === "B")
      return this.engine === "rust" ? `(?-u:\\${char})` : `\\${char}`;
    const set = shorthands[lower];
    if (set !== undefined) return char === lower ? `[${set}]` : this.not(set);
    if (lower === "p") return char === "p" ? this.property() : this.not(this.property());
    return literal(this.escaped(char));
  }

  /** The character behind an escape that stands for one. */
  private escaped(char: string): string {
    if (char === "") throw this.refuse("it ends in a backslash");
    if (char === "x") return this.hex();
    const code = plainEscapes[char];
    if (code !== undefined) return String.fromCodePoint(code);
    if (/\d/.test(char)) throw this.refuse("back-references are not supported");
    if (char === "n") throw this.refuse("it has a line break, and lines are searched one by one");
    if (/[A-Za-z]/.test(char)) throw this.refuse(`\\${char} is not supported`);
    return char;
  }

  private hex(): string {
    const rest = this.chars.slice(this.at, this.at + 10).join("");
    const found = /^(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})/.exec(rest);
    const code = Number.parseInt(found?.[1] ?? found?.[2] ?? "", 16);
    if (found === null || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
      throw this.refuse("\\x needs two hexadecimal digits or {a code point}");
    if (code === 10 || code === 0) throw this.refuse("a line has no line break and no NUL");
    this.at += found[0].length;
    return String.fromCodePoint(code);
  }

  private property(): string {
    const rest = this.chars.slice(this.at, this.at + 40).join("");
    const found = /^(?:[A-Z]|\{[A-Za-z_]+\})/.exec(rest);
    if (found === null) throw this.refuse("\\p needs a letter or {a name}");
    this.at += found[0].length;
    return `\\p${found[0]}`;
  }

  private set(): string {
    const negated = this.chars[this.at] === "^";
    if (negated) this.at += 1;
    let body = "";
    for (let first = true; ; first = false) {
      if (this.at >= this.chars.length) throw this.refuse("a [ is not closed");
      if (this.chars[this.at] === "]" && !first) break;
      body += this.setItem();
    }
    this.at += 1;
    return negated ? this.not(body) : `[${body}]`;
  }

  private setItem(): string {
    const rest = this.chars.slice(this.at, this.at + 12).join("");
    const posix = /^\[:\^?[a-z]+:\]/.exec(rest);
    if (posix !== null) {
      this.at += posix[0].length;
      return posix[0];
    }
    const low = this.setChar();
    const isRange = this.chars[this.at] === "-" && this.chars[this.at + 1] !== "]";
    if (!isRange || this.at + 1 >= this.chars.length) return low.text;
    if (!low.single) throw this.refuse("a range in [ ] begins with more than one character");
    this.at += 1;
    const high = this.setChar();
    if (!high.single) throw this.refuse("a range in [ ] ends with more than one character");
    return `${low.text}-${high.text}`;
  }

  private setChar(): { readonly text: string; readonly single: boolean } {
    const char = this.take();
    if (char === "\n") throw this.refuse("a line has no line break");
    if (char !== "\\") return { text: literal(char), single: true };
    const name = this.take();
    const set = shorthands[name];
    if (set !== undefined) return { text: set, single: false };
    if (name === "p") return { text: this.property(), single: false };
    if (/[DWSPbB]/.test(name)) throw this.refuse(`\\${name} inside [ ] is not supported`);
    return { text: literal(this.escaped(name)), single: true };
  }

  /** A negated set takes no part of a line's end, and neither engine may take a byte that is no UTF-8. */
  private not(set: string): string {
    return this.engine === "rust" ? `[^\\r\\n${set}]` : `[^\\r\\n\\x{D800}${set}]`;
  }

  private refuse(reason: string): LonghaulError {
    return invalid(this.pattern, reason);
  }
}

/** Safe inside and outside of brackets, for both engines. */
function literal(char: string): string {
  if (/^[A-Za-z0-9_ ]$/.test(char) || (char.codePointAt(0) ?? 0) > 0x7f) return char;
  return `\\x{${(char.codePointAt(0) ?? 0).toString(16)}}`;
}

function invalid(pattern: string, reason: string): LonghaulError {
  const cure = "use RE2 syntax without look-around and back-references";
  return new LonghaulError(
    "INVALID_ARGS",
    `pattern ${JSON.stringify(pattern)} cannot be used: ${reason}; ${cure}`,
  );
}
