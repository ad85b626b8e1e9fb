import type { MemorySample } from "./memory-worker.js";
import { printTable, round } from "./report.js";

/** A worker whose cache of workflows is bounded, after so many sessions. */
export interface BoundRow {
  readonly sessions: number;
  /** In its cache. */
  readonly cached: number;
  readonly rssMb: number;
  readonly heapMb: number;
  readonly mainHeapMb: number;
  /** RSS over that of the first row, percent. */
  readonly growth: number;
}

const budget = 5;

export function boundRows(
  counts: readonly number[],
  samples: readonly MemorySample[],
): readonly BoundRow[] {
  const first = samples[0]?.rssBytes ?? Number.NaN;
  return samples.map(({ workflows, rssBytes, heapBytes, mainHeapBytes }, index) => ({
    sessions: counts[index] ?? 0,
    cached: workflows,
    rssMb: megabytes(rssBytes),
    heapMb: megabytes(heapBytes),
    mainHeapMb: megabytes(mainHeapBytes),
    growth: round((rssBytes / first - 1) * 100, 1),
  }));
}

export function reportBound(rows: readonly BoundRow[]): void {
  const [first] = rows;
  const growth = rows.at(-1)?.growth ?? Number.NaN;
  console.log(`
A worker that keeps ${first?.cached} sessions in memory, while there are ever more idle ones, each after one turn. Memory of its process after
both threads have collected their garbage; heap: of the thread that holds the workflows, and of the one that runs the activities.
`);
  printTable(
    ["sessions", "cached", "RSS MB", "heap MB", "activities' heap MB", "growth %"],
    rows.map((row) => [
      row.sessions,
      row.cached,
      row.rssMb,
      row.heapMb,
      row.mainHeapMb,
      row.growth,
    ]),
  );
  console.log(
    `\nGrowth after the bound: ${growth} %, budget ${budget} %: ${growth < budget ? "holds" : "BROKEN"}.`,
  );
}

function megabytes(bytes: number): number {
  return round(bytes / 1_048_576, 1);
}
