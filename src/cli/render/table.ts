import { fit, glyphsOf, pad, styled, widthOf, type Terminal } from "./terminal.js";

/** Rows of clean cells in columns, the first one a heading. `cut`: to the width; a piped table is read by programs. */
export function tableLines(
  rows: readonly (readonly string[])[],
  cut: boolean,
  terminal: Terminal,
): readonly string[] {
  const [head = []] = rows;
  const widths = head.map((_, column) =>
    column === head.length - 1 ? 0 : Math.max(...rows.map((row) => widthOf(row[column] ?? ""))),
  );
  return rows.map((row, index) => {
    const line = row
      .map((cell, column) => pad(cell, widths[column] ?? 0))
      .join("  ")
      .trimEnd();
    const shown = cut ? fit(line, terminal.columns, glyphsOf(terminal).ellipsis) : line;
    return index === 0 ? styled(terminal, "bold", shown) : shown;
  });
}
