/** The results of a task for each item, in their order; at most `atOnce` run at a time. The first failure ends it. */
export async function eachOf<T, R>(
  items: readonly T[],
  atOnce: number,
  task: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const waiting = items.entries();
  const lane = async () => {
    for (const [index, item] of waiting) results[index] = await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane));
  return results;
}
