/** The known names, those most like `name` first; equally near ones keep their order. */
export function nearestFirst(name: string, known: readonly string[]): readonly string[] {
  const wanted = name.toLowerCase();
  const distances = new Map(
    known.map((candidate) => [candidate, editDistance(wanted, candidate.toLowerCase())]),
  );
  return known.toSorted((a, b) => (distances.get(a) ?? 0) - (distances.get(b) ?? 0));
}

/** Insertions, deletions and replacements that make `b` of `a`. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
