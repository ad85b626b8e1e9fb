/**
 * Makes text of models and tools safe for a terminal: control sequences (CSI, OSC and the other strings), C0 except
 * newline and tab, C1, and bidirectional embeddings and overrides are removed; lone surrogates become U+FFFD.
 */
export function clean(text: string): string {
  const cleaner = new Cleaner();
  return cleaner.push(text) + cleaner.end();
}

/** Clean text on one line: every run of white space is one space. */
export function oneLine(text: string): string {
  return clean(text).replaceAll(/\s+/g, " ").trim();
}

/**
 * `clean` for a stream. It keeps its place between pieces, so a sequence that is cut in two is removed as well and the
 * cleaned pieces, joined, equal the whole text cleaned at once.
 */
export class Cleaner {
  #place: Place = "text";
  #half = "";

  push(piece: string): string {
    let text = this.#half + piece;
    this.#half = "";
    if (/[\ud800-\udbff]$/.test(text)) {
      this.#half = text.slice(-1);
      text = text.slice(0, -1);
    }
    let kept = "";
    for (const character of text) kept += this.#take(character);
    return kept;
  }

  /** What is left when the stream is over. */
  end(): string {
    const half = this.#half;
    this.#half = "";
    const kept = half === "" ? "" : this.#take(half);
    this.#place = "text";
    return kept;
  }

  #take(character: string): string {
    const code = character.codePointAt(0) ?? 0;
    switch (this.#place) {
      case "text":
        return this.#text(character, code);
      case "escape":
        if (stringIntroducers.has(character)) this.#place = "string";
        else if (character === "[") this.#place = "csi";
        else if (code >= 0x30 && code <= 0x7e) this.#place = "text";
        else if (code < 0x20 || code > 0x2f) return this.#text(character, code);
        return "";
      case "csi":
        if (code >= 0x40 && code <= 0x7e) this.#place = "text";
        else if (code < 0x20 || code > 0x3f) return this.#text(character, code);
        return "";
      case "string":
        // A newline ends it too: an unfinished sequence must not hide the rest of the text.
        if (code === 0x1b) this.#place = "string-escape";
        else if (code === 0x07 || code === 0x9c) this.#place = "text";
        else if (character === "\n") return this.#text(character, code);
        return "";
      case "string-escape":
        this.#place = "escape";
        return this.#take(character);
    }
  }

  #text(character: string, code: number): string {
    this.#place = "text";
    if (code === 0x1b) this.#place = "escape";
    else if (code === 0x9b) this.#place = "csi";
    else if (c1StringIntroducers.has(code)) this.#place = "string";
    if (character === "\n" || character === "\t") return character;
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f) || isBidiControl(code)) return "";
    return code >= 0xd800 && code <= 0xdfff ? "\ufffd" : character;
  }
}

type Place = "text" | "escape" | "csi" | "string" | "string-escape";

/** After ESC: OSC, DCS, SOS, PM, APC. */
const stringIntroducers: ReadonlySet<string> = new Set(["]", "P", "X", "^", "_"]);
const c1StringIntroducers: ReadonlySet<number> = new Set([0x9d, 0x90, 0x98, 0x9e, 0x9f]);

function isBidiControl(code: number): boolean {
  return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}
