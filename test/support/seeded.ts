/** Seeded randomness for scenarios: the seed is in the test's output, `SEED=<n>` plays it again. */
export interface Random {
  readonly seed: number;
  /** In [0, 1). */
  next(): number;
  /** Whole, from 0 up to, not including, `below`. */
  int(below: number): number;
  pick<T>(list: readonly T[]): T;
}

export function seededRandom(): Random {
  const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000);
  console.log(`seed ${seed} (SEED=${seed} plays it again)`);
  let state = seed >>> 0;
  const next = (): number => {
    // Mulberry32.
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const int = (below: number): number => Math.floor(next() * below);
  return {
    seed,
    next,
    int,
    pick: (list) => {
      const item = list[int(list.length)];
      if (item === undefined) throw new Error("nothing to pick from");
      return item;
    },
  };
}
