import type { PlayedTurn } from "./drive.js";

type Row = readonly (string | number)[];

/** How turns ended by what was done to them, in the order of the alphabet. */
export function tableOf(turns: readonly PlayedTurn[]): {
  readonly head: readonly string[];
  readonly rows: readonly Row[];
} {
  const faults = [...new Set(turns.map(({ fault }) => fault))].toSorted();
  const rows = faults.map((fault): Row => {
    const own = turns.filter((turn) => turn.fault === fault);
    const requests = own.reduce((sum, turn) => sum + turn.requests, 0);
    const wrong = own.filter(({ problems }) => problems.length > 0).length;
    return [fault, own.length, requests, counted(own.map(({ end }) => end ?? "not ended")), wrong];
  });
  return { head: ["fault", "turns", "requests", "ended", "not as stated"], rows };
}

/** `completed 3, error SERVER 1` */
function counted(ends: readonly string[]): string {
  return [...new Set(ends)]
    .toSorted()
    .map((end) => `${end} ${ends.filter((one) => one === end).length}`)
    .join(", ");
}
