import { widthOf } from "../render/terminal.js";

export interface EditorView {
  readonly rows: readonly string[];
  /** Where the cursor stands, in `rows` and columns. */
  readonly row: number;
  readonly column: number;
}

export interface ViewSize {
  readonly columns: number;
  /** The text is scrolled to the cursor when it needs more. */
  readonly rows: number;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const margin = 2;

/** Lays a text out after a prompt of two columns; rows are broken at the width, and one column stays free for the cursor. */
export function viewOf(text: string, cursor: number, prompt: string, size: ViewSize): EditorView {
  const room = Math.max(1, size.columns - margin - 1);
  const rows: string[] = [];
  let [row, width, position] = ["", 0, 0];
  let at = { row: 0, column: margin };
  const breakRow = () => {
    rows.push((rows.length === 0 ? prompt : " ".repeat(margin)) + row);
    [row, width] = ["", 0];
  };
  const mark = () => {
    if (position === cursor) at = { row: rows.length, column: margin + width };
  };
  for (const { segment } of graphemes.segment(text)) {
    if (segment === "\n") {
      mark();
      breakRow();
    } else {
      const shown = segment === "\t" ? "    " : segment;
      const wide = widthOf(shown);
      if (width + wide > room) breakRow();
      mark();
      row += shown;
      width += wide;
    }
    position += segment.length;
  }
  if (position === cursor && width >= room) breakRow();
  mark();
  breakRow();
  const from = Math.max(0, Math.min(at.row - size.rows + 1, rows.length - size.rows));
  return { rows: rows.slice(from, from + size.rows), row: at.row - from, column: at.column };
}
