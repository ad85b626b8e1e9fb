import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Makes a directory and what is missing above it, one level at a time: Node's recursive `mkdir` never returns where the
 * system says ENOENT for a place whose parent is there (`/proc/x`). Throws the system's error, or ENOTDIR naming the
 * file that is in the way.
 */
export function makeDirectory(path: string, mode = 0o777): void {
  const missing: string[] = [];
  let place = resolve(path);
  while (!isDirectory(place) && dirname(place) !== place) {
    missing.push(place);
    place = dirname(place);
  }
  for (const one of missing.toReversed()) {
    try {
      mkdirSync(one, { mode });
    } catch (error) {
      // Another process may have made it meanwhile.
      if (!isDirectory(one)) throw error;
    }
  }
}

function isDirectory(path: string): boolean {
  let found;
  try {
    found = statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // Below a file: that file is met further up.
    if (error instanceof Error && "code" in error && error.code === "ENOTDIR") return false;
    throw error;
  }
  if (found === undefined || found.isDirectory()) return found !== undefined;
  throw Object.assign(new Error(`${path} is a file, not a directory`), { code: "ENOTDIR" });
}
