import { containerFlaw, maxDepth, notLossless, scalarFlaw } from "./lossless.js";

/**
 * One text for equal JSON values: keys in UTF-16 code unit order, no whitespace, keys with undefined left out.
 * Digests are made over it, so its form is a contract with every stored log. Throws TypeError (a bug) for a value that would not
 * survive JSON.
 */
export function canonicalJson(value: unknown): string {
  return write(value, value, 0);
}

function write(value: unknown, root: unknown, depth: number): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value !== "object" || value === null) {
    if (scalarFlaw(value) !== undefined) throw notLossless(root, { omitUndefined: true });
    return String(value);
  }
  if (depth >= maxDepth || containerFlaw(value) !== undefined)
    throw notLossless(root, { omitUndefined: true });
  return Array.isArray(value) ? writeItems(value, root, depth) : writeKeys(value, root, depth);
}

function writeItems(items: readonly unknown[], root: unknown, depth: number): string {
  let text = "[";
  for (let index = 0; index < items.length; index += 1) {
    text += `${index === 0 ? "" : ","}${write(items[index], root, depth + 1)}`;
  }
  return `${text}]`;
}

function writeKeys(value: object, root: unknown, depth: number): string {
  let text = "{";
  // Without a comparison function keys are sorted by UTF-16 code units.
  for (const key of Object.keys(value).toSorted()) {
    const inner: unknown = Reflect.get(value, key);
    if (inner === undefined) continue;
    text += `${text === "{" ? "" : ","}${JSON.stringify(key)}:${write(inner, root, depth + 1)}`;
  }
  return `${text}}`;
}
