/* oxlint-disable no-control-regex -- a terminal speaks in control characters */
import { widthOf, type Terminal } from "./terminal.js";

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/**
 * Breaks one clean line, colours allowed, into rows of at most `columns`: between words, within a word only when it is
 * longer than a row. Rows but the last stay the same when the line goes on.
 */
export function wrapLine(line: string, columns: number): readonly string[] {
  const rows: string[] = [];
  let [row, width] = ["", 0];
  const breakRow = () => {
    rows.push(row);
    [row, width] = ["", 0];
  };
  for (const [piece] of line.matchAll(/\u001b\[[\d;]*m|\t| +|[^\s\u001b]+|\s/g)) {
    if (piece.startsWith("\u001b")) {
      row += piece;
      continue;
    }
    const blank = piece.trim() === "";
    const text = piece === "\t" ? " ".repeat(8 - (width % 8)) : piece;
    const wide = widthOf(text);
    if (width + wide <= columns) {
      row += text;
      width += wide;
    } else if (blank) {
      // Blanks at a break stand for it.
      if (width > 0) breakRow();
    } else if (wide <= columns) {
      row = row.trimEnd();
      breakRow();
      [row, width] = [text, wide];
    } else {
      if (width > 0) {
        row = row.trimEnd();
        breakRow();
      }
      for (const { segment } of graphemes.segment(text)) {
        const one = widthOf(segment);
        if (width + one > columns) breakRow();
        row += segment;
        width += one;
      }
    }
  }
  return [...rows, row];
}

/** One clean line that must be read whole, an error's: rows of the width on a terminal, else the line as it is. */
export function wholeLine(line: string, terminal: Terminal, margin = 0): readonly string[] {
  if (terminal.wrap !== true) return [line];
  return wrapLine(line, Math.max(terminal.columns - margin, 1));
}
