import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { isFields } from "./reference-entry.js";

/** Longer texts of a checkpoint are kept outside it, bytes (design D8); in a large one those from the next size on. */
export const bodySizes = [8_192, 1_024, 256, 96] as const;

/** What stands for a text that is kept outside; no other text begins so. */
const mark = "\u0000body:";

/** The name of a body: what is stored under it is the text as JSON, so that any text survives. */
export interface Body {
  readonly digest: string;
  readonly json: string;
}

export function bodyOf(text: string): Body {
  const json = JSON.stringify(text);
  return { digest: bytesToHex(sha256(utf8ToBytes(json))), json };
}

/** A copy in which texts of more than `limit` UTF-16 units are told by name, where `take` says so. */
export function withoutBodies(
  value: unknown,
  limit: number,
  take: (body: Body) => boolean,
): unknown {
  return mapTexts(value, (text) => {
    if (text.length <= limit && !text.startsWith(mark)) return text;
    const body = bodyOf(text);
    return take(body) ? `${mark}${body.digest}` : text;
  });
}

/** A copy with the bodies back in their places; `missing` are those that `bodies` has not. */
export function withBodies<T>(
  value: T,
  bodies: ReadonlyMap<string, string>,
): { readonly value: T; readonly missing: ReadonlySet<string> };
export function withBodies(
  value: unknown,
  bodies: ReadonlyMap<string, string>,
): { readonly value: unknown; readonly missing: ReadonlySet<string> } {
  const missing = new Set<string>();
  const filled = mapTexts(value, (text) => {
    if (!text.startsWith(mark)) return text;
    const digest = text.slice(mark.length);
    const body = bodies.get(digest);
    if (body !== undefined) return body;
    missing.add(digest);
    return text;
  });
  return { value: filled, missing };
}

/** Every text in a value that could be a body, by its name. */
export function textsOf(value: unknown): ReadonlyMap<string, string> {
  const least = bodySizes.at(-1) ?? 0;
  const found = new Map<string, string>();
  mapTexts(value, (text) => {
    if (text.length > least || text.startsWith(mark)) found.set(bodyOf(text).digest, text);
    return text;
  });
  return found;
}

/** The text of a stored body, or undefined when it is not what its name says. */
export function readBody(digest: string, json: string): string | undefined {
  if (bytesToHex(sha256(utf8ToBytes(json))) !== digest) return undefined;
  try {
    const text: unknown = JSON.parse(json);
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}

/** What has no text that changes comes back itself. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) {
    const next = value.map((item) => mapTexts(item, change));
    return next.every((item, index) => item === value[index]) ? value : next;
  }
  if (!isFields(value)) return value;
  const entries = Object.entries(value).map(
    ([key, inner]) => [key, mapTexts(inner, change)] as const,
  );
  return entries.every(([key, inner]) => inner === value[key])
    ? value
    : Object.fromEntries(entries);
}
