export type Cell = string | number | undefined;

/** Prints rows under a head, numbers to the right. */
export function printTable(head: readonly string[], rows: readonly (readonly Cell[])[]): void {
  const text = rows.map((row) => row.map(show));
  const widths = head.map((name, column) =>
    Math.max(name.length, ...text.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[], right: (column: number) => boolean): string =>
    cells
      .map((cell, column) =>
        right(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  const isNumber = (column: number): boolean =>
    rows.some((row) => typeof row[column] === "number") &&
    rows.every((row) => typeof row[column] !== "string");
  console.log(line(head, isNumber));
  console.log(widths.map((width) => "-".repeat(width)).join("  "));
  for (const row of text) console.log(line(row, isNumber));
}

/** The last line of every bench, for programs. */
export function printResult(bench: string, rows: readonly object[]): void {
  console.log(JSON.stringify({ bench, rows }));
}

export function round(value: number, digits = 0): number {
  const scale = 10 ** digits;
  return Math.round(value * scale) / scale;
}

/** Nearest rank, to one digit. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return round(sorted[Math.ceil((percent / 100) * sorted.length) - 1] ?? Number.NaN, 1);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

function show(cell: Cell): string {
  if (cell === undefined) return "";
  return typeof cell === "number" ? cell.toLocaleString("en-US") : cell;
}
