import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import * as z from "zod";

import { LonghaulError } from "../contracts/errors.js";
import { defineTool } from "./define.js";
import { failed, readRegularFile } from "./file-bytes.js";
import { replaceFile } from "./replace-file.js";
import { reasonOf, resolveInWorkspace } from "./workspace-path.js";

const maxFileBytes = 10 * 1024 * 1024;
const maxPlaces = 10_000;

/** Replaces a text in a file; works on bytes, so what it does not touch stays as it is, whatever its encoding. */
export const editTool = defineTool({
  name: "edit",
  description:
    "Replace text in a file. `oldText` must be in the file exactly as given, whitespace included, and only once unless `replaceAll` is set; give enough surrounding lines to make it unique. Line endings of the file are kept. Use write to create a file. Relative paths start at the workspace.",
  parameters: z.object({
    path: z.string().min(1).describe("File to change."),
    oldText: z.string().min(1).describe("Text to replace, exactly as it is in the file."),
    newText: z.string().describe("Text to put in its place."),
    replaceAll: z.boolean().optional().describe("Replace every occurrence, default false."),
  }),
  async execute({ path, oldText, newText, replaceAll = false }, context) {
    if (oldText === newText) throw unchanged();
    const real = await resolveInWorkspace(context, path);
    const cure = "change it with bash (sed, or a script)";
    const { bytes, facts } = await readRegularFile(path, real, maxFileBytes, cure);
    if (bytes.includes(0))
      throw failed(`${path} is a binary file of ${bytes.length} bytes; ${cure}`);
    const found = locate(bytes, oldText, newText, replaceAll);
    if (found === undefined) throw failed(notFound(path, bytes, oldText));
    const { starts, from, to } = found;
    if (!replaceAll && starts.length > 1) throw failed(ambiguous(path, bytes, starts));
    if (from.equals(to)) throw unchanged();
    const parts: Buffer[] = [];
    let rest = 0;
    for (const start of starts) {
      parts.push(bytes.subarray(rest, start), to);
      rest = start + from.length;
    }
    const after = Buffer.concat([...parts, bytes.subarray(rest)]);
    if (after.length > maxFileBytes)
      throw failed(`${path} would have ${after.length} bytes, more than ${maxFileBytes}; ${cure}`);
    try {
      await access(real, constants.W_OK);
      await replaceFile(real, after, facts, context.signal, async () => {
        const now = await stat(real);
        if (now.ino !== facts.ino || now.mtimeMs !== facts.mtimeMs || now.size !== facts.size)
          throw failed(`${path} was changed by someone else meanwhile; read it and edit it again`);
      });
    } catch (error) {
      if (error instanceof LonghaulError || context.signal.aborted) throw error;
      throw new LonghaulError("TOOL_FAILED", `cannot edit ${path}: ${reasonOf(error)}`, {
        cause: error,
      });
    }
    const line = lineAt(bytes, starts[0] ?? 0);
    const places = starts.length === 1 ? `line ${line}` : `${starts.length} places`;
    return {
      text: `edited ${path} at ${places} (${after.length} bytes)`,
      meta: { replacements: starts.length, line, bytes: after.length },
    };
  },
});

interface Found {
  readonly starts: readonly number[];
  /** What is in the file, and what takes its place. */
  readonly from: Buffer;
  readonly to: Buffer;
}

/** The text as given, else with the line endings of the file. */
function locate(
  bytes: Buffer,
  oldText: string,
  newText: string,
  replaceAll: boolean,
): Found | undefined {
  const ending = endingOf(bytes);
  const fitted = withEnding(oldText, ending);
  for (const text of new Set([oldText, fitted])) {
    const from = Buffer.from(text, "utf8");
    const starts = placesOf(bytes, from, replaceAll ? from.length : 1);
    if (starts.length === 0) continue;
    // Where the file mixes its endings, the replaced text says which to use.
    const own = text.includes("\n") && !text.includes("\r\n") ? "\n" : ending;
    return { starts, from, to: Buffer.from(withEnding(newText, own), "utf8") };
  }
  return undefined;
}

/** The line ending of most lines. */
function endingOf(bytes: Buffer): string {
  let [lines, pairs] = [0, 0];
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) {
    lines += 1;
    if (bytes[at - 1] === 13) pairs += 1;
  }
  return pairs * 2 > lines ? "\r\n" : "\n";
}

function withEnding(text: string, ending: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll("\n", ending);
}

function placesOf(bytes: Buffer, text: Buffer, step: number): number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + step)) {
    places.push(at);
    if (places.length > maxPlaces)
      throw failed(`oldText matches more than ${maxPlaces} places; give a longer text`);
  }
  return places;
}

function lineAt(bytes: Buffer, offset: number): number {
  let line = 1;
  for (let at = bytes.indexOf(10); at >= 0 && at < offset; at = bytes.indexOf(10, at + 1))
    line += 1;
  return line;
}

function ambiguous(path: string, bytes: Buffer, starts: readonly number[]): string {
  const shown = starts.slice(0, 5).map((start) => lineAt(bytes, start));
  const more = starts.length > shown.length ? ", …" : "";
  return `oldText matches ${starts.length} places in ${path} (lines ${shown.join(", ")}${more}); add surrounding lines to make it unique, or set replaceAll`;
}

function notFound(path: string, bytes: Buffer, oldText: string): string {
  const where = nearly(bytes.toString("utf8"), oldText);
  const hint =
    where === undefined
      ? "read the file and copy the text exactly"
      : `${where} only in whitespace; read them and copy the text exactly`;
  return `oldText was not found in ${path}; ${hint}`;
}

/** Lines that equal the text when runs of whitespace count as one space. */
function nearly(content: string, oldText: string): string | undefined {
  const plain = (line: string): string => line.trim().replaceAll(/\s+/g, " ");
  const wanted = oldText.trim().split("\n").map(plain);
  const lines = content.split("\n").map(plain);
  const [first = ""] = wanted;
  if (wanted.join("") === "") return undefined;
  for (let at = 0; at + wanted.length <= lines.length; at += 1) {
    const near =
      wanted.length === 1
        ? lines[at]?.includes(first)
        : wanted.every((line, index) => lines[at + index] === line);
    if (near !== true) continue;
    const last = at + wanted.length;
    return wanted.length === 1 ? `line ${last} differs` : `lines ${at + 1}-${last} differ`;
  }
  return undefined;
}

function unchanged(): LonghaulError {
  return failed("oldText and newText are the same; nothing to change");
}
