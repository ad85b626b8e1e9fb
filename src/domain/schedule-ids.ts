/** The ids ever created, exactly and small: numbers as `schedule-N` in closed ranges, ascending, apart; and all others. */
export interface SeenIds {
  readonly ranges: readonly (readonly [from: number, to: number])[];
  readonly others: readonly string[];
}

export const noIds: SeenIds = { ranges: [], others: [] };

export function hasSeen(seen: SeenIds, id: string): boolean {
  const number = numberOf(id);
  return number === undefined
    ? seen.others.includes(id)
    : seen.ranges.some(([from, to]) => from <= number && number <= to);
}

/** With one more id, which must be new. */
export function addSeen(seen: SeenIds, id: string): SeenIds {
  const number = numberOf(id);
  if (number === undefined) return { ...seen, others: [...seen.others, id] };
  const before = seen.ranges.filter(([, to]) => to < number);
  const after = seen.ranges.filter(([from]) => from > number);
  const left = before.at(-1);
  const right = after[0];
  const joinsLeft = left !== undefined && left[1] + 1 === number;
  const joinsRight = right !== undefined && right[0] - 1 === number;
  const joined = [joinsLeft ? left[0] : number, joinsRight ? right[1] : number] as const;
  return {
    ...seen,
    ranges: [
      ...(joinsLeft ? before.slice(0, -1) : before),
      joined,
      ...(joinsRight ? after.slice(1) : after),
    ],
  };
}

/** The id of the next reminder: never one that was used, also when that reminder is gone (spec/schedule §2). */
export function allocateId(seen: SeenIds): string {
  const first = countSeen(seen) + 1;
  const taken = seen.ranges.find(([from, to]) => from <= first && first <= to);
  return `schedule-${taken === undefined ? first : taken[1] + 1}`;
}

function countSeen(seen: SeenIds): number {
  return seen.ranges.reduce((sum, [from, to]) => sum + to - from + 1, seen.others.length);
}

/** What is wrong with ids that were stored, of any shape; undefined when nothing is. */
export function checkSeen(seen: unknown): string | undefined {
  if (typeof seen !== "object" || seen === null) return "the used ids must be an object";
  const { ranges, others, ...rest } = seen as { readonly [key in keyof SeenIds]?: unknown };
  if (!Array.isArray(ranges) || !Array.isArray(others) || Object.keys(rest).length > 0)
    return "the used ids must be ranges and others";
  let last = -1;
  for (const range of ranges) {
    if (!Array.isArray(range) || range.length !== 2) return "a range of ids must have two ends";
    const [from, to] = range as readonly unknown[];
    if (!isNumber(from) || !isNumber(to) || from > to || from < last + 2)
      return "the ranges of ids must be ascending and apart";
    last = to;
  }
  const names = new Set(others);
  return names.size === others.length &&
    others.every((id) => isId(id) && numberOf(id) === undefined)
    ? undefined
    : "the other ids must be distinct and of another form";
}

/** Text that is not empty and has no outer whitespace: a legal id in the log. */
export function isId(id: unknown): id is string {
  return typeof id === "string" && id !== "" && id.trim() === id;
}

function numberOf(id: string): number | undefined {
  const digits = /^schedule-([1-9]\d*)$/.exec(id)?.[1];
  return digits !== undefined && isNumber(Number(digits)) ? Number(digits) : undefined;
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1;
}
