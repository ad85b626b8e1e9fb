import { createHash } from "node:crypto";
import { LonghaulError } from "../contracts/errors.js";

/** Longest id of a session or stream, in UTF-16 code units. */
const maxIdLength = 1000;
/** Longest escaped name that is used as it is; the usual limit of a file name is 255 bytes. */
const maxNameLength = 180;
const prefixLength = 80;

/**
 * A file name for an id: `a-z 0-9 - _ .` stay, `/` becomes `+`, everything else (also capitals and a leading dot) is
 * `%xx` per UTF-8 byte, so names never differ by case alone and never leave their folder. Names that get too long end
 * in `~` and a digest; see `isHashedName`. INVALID_INPUT for an id over 1,000 characters.
 */
export function fileNameOf(id: string): string {
  if (id.length > maxIdLength) {
    throw new LonghaulError(
      "INVALID_INPUT",
      `expected an id of at most ${maxIdLength} characters, got ${id.length}`,
    );
  }
  if (id === "") return "%";
  let name = "";
  for (const char of id) name += escapeChar(char, name === "");
  if (name.length <= maxNameLength) return name;
  return `${name.slice(0, prefixLength)}~${createHash("sha256").update(name).digest("hex")}`;
}

/** The id a file name was made from; undefined for a hashed or foreign name. */
export function idOfFileName(name: string): string | undefined {
  if (name === "%") return "";
  let id = "";
  for (const match of name.matchAll(/((?:%[0-9a-f]{2})+)|%u([0-9a-f]{4})|([^])/gu)) {
    const [, bytes, surrogate, char = ""] = match;
    if (bytes !== undefined) id += Buffer.from(bytes.replaceAll("%", ""), "hex").toString("utf8");
    else if (surrogate !== undefined) id += String.fromCharCode(Number.parseInt(surrogate, 16));
    else id += char === "+" ? "/" : char;
  }
  return id.length <= maxIdLength && fileNameOf(id) === name ? id : undefined;
}

/** Is the id of this name only known from its sidecar file? */
export function isHashedName(name: string): boolean {
  return name.indexOf("~") > 0;
}

/** Name of the file that keeps the id of a hashed name; never the name of an id, since `~` is escaped in those. */
export function sidecarOf(hashedName: string): string {
  return `~id${hashedName.slice(hashedName.indexOf("~"))}`;
}

/** Order of ids: by code point, which is the order of their UTF-8 bytes. */
export function compareIds(a: string, b: string): number {
  const right = b[Symbol.iterator]();
  for (const char of a) {
    const other = right.next();
    if (other.done) return 1;
    const difference = (char.codePointAt(0) ?? 0) - (other.value.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return right.next().done ? 0 : -1;
}

function escapeChar(char: string, first: boolean): string {
  if (char === "/") return "+";
  if (/^[a-z0-9_-]$/.test(char) || (char === "." && !first)) return char;
  const code = char.codePointAt(0) ?? 0;
  if (code >= 0xd800 && code <= 0xdfff) return `%u${code.toString(16)}`;
  return [...Buffer.from(char, "utf8")]
    .map((byte) => `%${byte.toString(16).padStart(2, "0")}`)
    .join("");
}
