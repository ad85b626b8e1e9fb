import * as z from "zod";

import { headBytes } from "../process/utf8.js";
import { defineTool } from "./define.js";
import { failed, readRegularFile } from "./file-bytes.js";
import { imageFacts, keepImage } from "./image.js";
import { resolveInWorkspace } from "./workspace-path.js";

const maxFileBytes = 64 * 1024 * 1024;
const defaultLines = 2_000;

/** Reads lines of a text file, or an image; bounds its own text. */
export const readTool = defineTool({
  name: "read",
  description:
    "Read a text file or an image (PNG, JPEG, GIF, WebP). Returns the lines of a text as they are, from `offset` (1 is the first line) up to `limit` lines; a closing note says when there is more. Relative paths start at the workspace.",
  parameters: z.object({
    path: z.string().min(1).describe("File to read."),
    offset: z.int().min(1).optional().describe("First line to return, default 1."),
    limit: z.int().min(1).optional().describe(`Most lines to return, default ${defaultLines}.`),
  }),
  parallel: true,
  idempotent: true,
  spill: false,
  async execute({ path, offset = 1, limit = defaultLines }, context) {
    const real = await resolveInWorkspace(context, path);
    const cure = "read parts of it with bash (head, tail, sed)";
    const { bytes } = await readRegularFile(path, real, maxFileBytes, cure);
    const image = imageFacts(bytes);
    if (image !== undefined) return await keepImage(path, bytes, image, context);
    if (bytes.includes(0)) {
      throw failed(
        `${path} is a binary file of ${bytes.length} bytes; inspect it with bash (file, xxd)`,
      );
    }
    if (bytes.length === 0) return "(empty file)";
    const lines = lineStarts(bytes);
    if (offset > lines.length)
      throw failed(`offset ${offset} is past the end of ${path}, which has ${lines.length} lines`);
    return excerpt(
      bytes,
      lines,
      offset - 1,
      Math.min(limit, lines.length - offset + 1),
      context.maxInlineBytes,
    );
  },
});

function lineStarts(bytes: Buffer): number[] {
  const starts = [0];
  for (let at = bytes.indexOf(10); at >= 0 && at + 1 < bytes.length; at = bytes.indexOf(10, at + 1))
    starts.push(at + 1);
  return starts;
}

/** Whole lines within the limit; a single line that is too long is cut. */
function excerpt(
  bytes: Buffer,
  starts: readonly number[],
  first: number,
  wanted: number,
  maxBytes: number,
): string {
  // Room for the note, and for U+FFFD, which takes more bytes than what it replaces.
  const from = starts[first] ?? 0;
  const room = Math.max(0, maxBytes - 160);
  const startOf = (line: number): number => starts[line] ?? bytes.length;
  const fits = (count: number): boolean =>
    Buffer.byteLength(bytes.toString("utf8", from, startOf(first + count))) <= room;
  let count = wanted;
  if (!fits(count)) {
    let low = 0;
    for (let high = count; low + 1 < high;) {
      const middle = Math.floor((low + high) / 2);
      if (fits(middle)) low = middle;
      else high = middle;
    }
    count = low;
  }
  if (count === 0) {
    const line = Buffer.from(bytes.toString("utf8", from, startOf(first + 1)));
    const cut = headBytes(line, room).toString("utf8");
    return `${cut}\n[line ${first + 1} of ${starts.length} is cut: it has ${line.length} bytes; next offset ${first + 2}]`;
  }
  const text = bytes.toString("utf8", from, startOf(first + count));
  const next = first + count + 1;
  if (next > starts.length) return text;
  return `${text}[lines ${first + 1}-${next - 1} of ${starts.length}; next offset ${next}]`;
}
