import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelRequest } from "../../src/contracts/model.js";

/** The requests a scripted model recorded for a session, in the order it got them; none: an empty list. */
export async function readRecorded(directory: string, session: string): Promise<ModelRequest[]> {
  let text: string;
  try {
    text = await readFile(join(directory, `${session}.ndjson`), "utf8");
  } catch {
    return [];
  }
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line): ModelRequest => JSON.parse(line));
}
