import { widthOf } from "../render/terminal.js";
import { wrapLine } from "../render/wrap.js";

export interface Footer {
  readonly rows: readonly string[];
  readonly row: number;
  readonly column: number;
}

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

const up = (rows: number) => (rows > 0 ? `\u001b[${rows}A` : "");
const right = (columns: number) => (columns > 0 ? `\u001b[${columns}C` : "");
const hideCursor = "\u001b[?25l";
const showCursor = "\u001b[?25h";

/**
 * A terminal whose last rows are rewritten: text that is whole scrolls up and is never touched again; the row that is
 * still growing and the footer below it are drawn anew at each change. Only cursor moves and erasing to the end are used.
 */
export class Screen {
  readonly #write: (text: string) => void;
  readonly #size: () => ScreenSize;
  /** Rows at the bottom that may be rewritten, without colours' effect on their width, and the cursor in them. */
  #drawn: readonly string[] = [];
  #row = 0;
  #column = 0;
  /** The row of the transcript that is not ended yet. */
  #open = "";
  #whole = "";
  #footer: Footer = { rows: [], row: 0, column: 0 };
  #scheduled = false;
  readonly #schedule: (draw: () => void) => void;

  constructor(
    write: (text: string) => void,
    size: () => ScreenSize,
    schedule: (draw: () => void) => void = setImmediate,
  ) {
    this.#write = write;
    this.#size = size;
    this.#schedule = schedule;
  }

  /** Text of the transcript: clean but for colours, in pieces cut anywhere between characters. */
  print(text: string): void {
    const { columns } = this.#size();
    const lines = (this.#open + text).split("\n");
    const last = wrapLine(lines.pop() ?? "", columns - 1);
    const rows = [...lines.flatMap((line) => wrapLine(line, columns)), ...last.slice(0, -1)];
    this.#whole += rows.map((row) => `${row}\r\n`).join("");
    this.#open = last.at(-1) ?? "";
    this.#later();
  }

  /** What stands below the transcript, no row wider than the terminal but one column. */
  setFooter(footer: Footer): void {
    this.#footer = footer;
    this.#later();
  }

  /** The terminal has another size: rows that were drawn may have been folded by it. */
  resized(): void {
    const { columns } = this.#size();
    const folds = (width: number) => Math.max(0, Math.ceil(width / columns) - 1);
    const above = this.#drawn.slice(0, this.#row);
    const folded = above.reduce((sum, row) => sum + folds(widthOf(row)), 0);
    this.#row += folded + Math.floor(this.#column / columns);
    this.draw();
  }

  /** Empties the screen; the transcript before stays in the scrollback as far as the terminal keeps it. */
  clear(): void {
    this.#write("\u001b[2J\u001b[H");
    this.#drawn = [];
    this.#row = 0;
    this.draw();
  }

  /** Takes the footer away and leaves the cursor on a fresh line. */
  end(): void {
    this.#footer = { rows: [], row: 0, column: 0 };
    if (this.#open !== "") this.print("\n");
    this.draw();
    this.#write(showCursor);
  }

  draw(): void {
    this.#scheduled = false;
    const erase = `${up(this.#row)}\r\u001b[J`;
    const { rows: footer, row, column } = this.#footer;
    const above = this.#open === "" ? [] : [this.#open];
    this.#drawn = [...above, ...footer];
    const last = Math.max(0, this.#drawn.length - 1);
    this.#row = footer.length === 0 ? last : above.length + row;
    this.#column = footer.length === 0 ? widthOf(this.#open) : column;
    const place = `${up(last - this.#row)}\r${right(this.#column)}`;
    const whole = this.#whole;
    this.#whole = "";
    this.#write(`${hideCursor}${erase}${whole}${this.#drawn.join("\r\n")}${place}${showCursor}`);
  }

  #later(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#schedule(() => {
      if (this.#scheduled) this.draw();
    });
  }
}
