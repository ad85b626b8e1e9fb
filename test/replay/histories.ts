import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { HistoryJson, StateDigests, States } from "../support/digests.js";

const run = promisify(execFile);
const folder = fileURLToPath(new URL("./histories", import.meta.url));
const script = fileURLToPath(new URL("./replay-states.ts", import.meta.url));

/** Releases with recorded histories, the oldest first. */
export const versions: readonly string[] = readdirSync(folder).toSorted((a, b) =>
  a.localeCompare(b, "en", { numeric: true }),
);

/** The folder of a release, which need not be there. */
export function folderOf(version: string): string {
  return join(folder, version);
}

/** Names of a release's histories. */
export function namesOf(version: string): readonly string[] {
  return readdirSync(folderOf(version))
    .filter((file) => file.endsWith(".json") && file !== digestsFile)
    .map((file) => file.slice(0, -".json".length));
}

export function pathOf(version: string, name: string): string {
  return join(folderOf(version), `${name}.json`);
}

export function readHistory(version: string, name: string): HistoryJson {
  return JSON.parse(readFileSync(pathOf(version, name), "utf8")) as HistoryJson;
}

const digestsFile = "digests.json";

/** Where the states are kept that a release's histories end in. */
export function digestsPathOf(version: string): string {
  return join(folderOf(version), digestsFile);
}

/** By the names of the histories. */
export type RecordedDigests = { readonly [name: string]: StateDigests };

export function readDigests(version: string): RecordedDigests {
  const path = digestsPathOf(version);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as RecordedDigests) : {};
}

/** Replays the histories of releases on a bundle of `writeDigestBundle`, in a process of its own with this time zone. */
export async function statesIn(
  zone: string,
  bundle: string,
  of: readonly string[],
): Promise<States> {
  const { stdout } = await run(process.execPath, ["--import", "tsx", script, bundle, ...of], {
    env: { ...process.env, TZ: zone },
    maxBuffer: 100_000_000,
  });
  return JSON.parse(stdout) as States;
}
