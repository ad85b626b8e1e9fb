import stringWidth from "string-width";

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/**
 * What a terminal shows after some output: rows of text with a scrollback. It knows what the command line uses (CR, LF,
 * BS, cursor moves, erasing, SGR, modes) and throws at anything else, so that nothing fancier slips in.
 */
export class EmulatedScreen {
  rows: number;
  columns: number;
  /** All rows from the first that scrolled away to the bottom of the screen; a cell of a wide character's right half is "". */
  #lines: string[][] = [[]];
  #top = 0;
  #row = 0;
  #column = 0;
  #pendingWrap = false;
  #rest = "";
  readonly modes = new Set<string>();

  constructor(rows: number, columns: number) {
    this.rows = rows;
    this.columns = columns;
  }

  /** Everything, the scrollback too, without trailing blanks. */
  text(): string {
    return this.#lines
      .map((line) => lineText(line))
      .join("\n")
      .trimEnd();
  }

  /** The visible part. */
  visible(): string {
    return this.#lines
      .slice(this.#top, this.#top + this.rows)
      .map((line) => lineText(line))
      .join("\n")
      .trimEnd();
  }

  get cursor(): { readonly row: number; readonly column: number } {
    return { row: this.#row - this.#top, column: this.#column };
  }

  write(data: string): void {
    let text = this.#rest + data;
    this.#rest = "";
    while (text !== "") {
      const control = /^\u001b(?:\[([?>]?)([\d;]*)([A-Za-z~])|[78=>])/.exec(text);
      if (control !== null) {
        if (control[3] !== undefined) this.#csi(control[1] ?? "", control[2] ?? "", control[3]);
        text = text.slice(control[0].length);
      } else if (/^\u001b(?:\[[?>]?[\d;]*)?$/.test(text)) {
        this.#rest = text;
        return;
      } else if (text.startsWith("\u001b")) {
        throw new Error(`unknown sequence ${JSON.stringify(text.slice(0, 12))}`);
      } else {
        const plain = /^[^\u001b]+/.exec(text)?.[0] ?? "";
        for (const { segment } of graphemes.segment(plain)) this.#put(segment);
        text = text.slice(plain.length);
      }
    }
  }

  #put(segment: string): void {
    if (segment === "\r\n" || segment === "\n" || segment === "\r") {
      if (segment !== "\n") this.#column = 0;
      if (segment !== "\r") this.#down();
      this.#pendingWrap = false;
      return;
    }
    if (segment === "\b") {
      this.#column = Math.max(0, this.#column - 1);
      return;
    }
    if (segment === "\u0007") return;
    if (segment === "\t") segment = " ".repeat(8 - (this.#column % 8));
    if (/^\p{Cc}$/u.test(segment)) throw new Error(`unknown control ${JSON.stringify(segment)}`);
    const width = stringWidth(segment);
    if (this.#pendingWrap || this.#column + width > this.columns) {
      this.#column = 0;
      this.#down();
      this.#pendingWrap = false;
    }
    const line = this.#line();
    line[this.#column] = segment;
    for (let extra = 1; extra < width; extra++) line[this.#column + extra] = "";
    this.#column += width;
    if (this.#column >= this.columns) {
      this.#column = this.columns - 1;
      this.#pendingWrap = true;
    }
  }

  #csi(mark: string, parameters: string, final: string): void {
    const [first = 0] = parameters.split(";").map(Number);
    const count = Math.max(1, first);
    if (final !== "m") this.#pendingWrap = false;
    switch (mark + final) {
      case "m":
        return;
      case "A":
        this.#row = Math.max(this.#top, this.#row - count);
        return;
      case "B":
        this.#row = Math.min(this.#top + this.rows - 1, this.#row + count);
        return;
      case "C":
        this.#column = Math.min(this.columns - 1, this.#column + count);
        return;
      case "D":
        this.#column = Math.max(0, this.#column - count);
        return;
      case "G":
        this.#column = Math.min(this.columns, count) - 1;
        return;
      case "H":
        this.#row = this.#top;
        this.#column = 0;
        return;
      case "K":
        if (first === 2) this.#line().length = 0;
        else this.#line().length = Math.min(this.#line().length, this.#column);
        return;
      case "J":
        if (first === 2) this.#lines.splice(this.#top);
        else {
          this.#line().length = Math.min(this.#line().length, this.#column);
          this.#lines.splice(this.#row + 1);
        }
        return;
      case "?h":
        this.modes.add(parameters);
        return;
      case "?l":
        this.modes.delete(parameters);
        return;
      default:
        throw new Error(`unknown sequence CSI ${mark}${parameters}${final}`);
    }
  }

  #down(): void {
    this.#row += 1;
    if (this.#row >= this.#top + this.rows) this.#top += 1;
    this.#line();
  }

  #line(): string[] {
    while (this.#lines.length <= this.#row) this.#lines.push([]);
    return this.#lines[this.#row] ?? [];
  }
}

function lineText(line: readonly string[]): string {
  return Array.from(line, (cell) => cell ?? " ")
    .join("")
    .trimEnd();
}
