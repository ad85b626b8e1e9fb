/** Largest page, UTF-8 bytes of JSON: that of a session's own pages (design D2). */
const pageBytes = 262_144;

/** At most `limit` items, as JSON at most a page, but at least one when there is one; asks for no more than it gives and one. */
export async function fillPage<T>(
  items: Iterable<T> | AsyncIterable<T>,
  limit = Infinity,
): Promise<readonly T[]> {
  const page: T[] = [];
  let bytes = 0;
  for await (const item of items) {
    bytes += Buffer.byteLength(JSON.stringify(item)) + 1;
    if (page.length > 0 && bytes > pageBytes) break;
    page.push(item);
    if (page.length >= limit) break;
  }
  return page;
}
