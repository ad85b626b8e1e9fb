/** The known word nearest to a mistyped one, if any is near: at most a third of its letters differ, or it begins alike. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const bare = candidate.replace(/^-+/, "");
    const typed = word.replace(/^-+/, "");
    const near = Math.max(1, Math.floor(bare.length / 3));
    const found = distance(typed.toLowerCase(), bare);
    const begins = typed.length >= 2 && bare.startsWith(typed.toLowerCase());
    if ((found <= near || begins) && (best === undefined || found < best.distance))
      best = { word: candidate, distance: found };
  }
  return best?.word;
}

/** Insertions, deletions, replacements and swaps of neighbours between two words. */
function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = at(rows, i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? at(rows, i - 2, j - 2) + 1 : Infinity;
      row.push(Math.min(at(rows, i - 1, j) + 1, (row[j - 1] ?? Infinity) + 1, replace, swap));
    }
    rows.push(row);
  }
  return at(rows, a.length, b.length);
}

function at(rows: readonly (readonly number[])[], row: number, column: number): number {
  return rows[row]?.[column] ?? Infinity;
}
