import { spawn } from "node:child_process";

import type { LineSearch } from "./grep-engine.js";
import type { LinePattern } from "./grep-pattern.js";

const maxOutputBytes = 64 * 1024 * 1024;

/**
 * Asks ripgrep which lines match. It is given every file by name, so the walk, the order and what is left out are ours.
 * `instead` is asked when ripgrep is not there, is too old, fails, or says too much.
 */
export function openRipgrepSearch(
  pattern: LinePattern,
  maxBytes: number,
  stop: AbortSignal,
  instead: () => LineSearch,
): LineSearch {
  let usable = true;
  let other: LineSearch | undefined;
  return {
    async lines(paths, limit) {
      if (stop.aborted) return undefined;
      if (usable) {
        const output = await runRipgrep(pattern, paths, limit, maxBytes, stop);
        const found = output === undefined ? undefined : parseOutput(output, paths);
        if (found !== undefined) return found;
        if (stop.aborted) return undefined;
        usable = false;
      }
      other ??= instead();
      return await other.lines(paths, limit);
    },
    async close() {
      await other?.close();
    },
  };
}

/** Its standard output: `<path> NUL <line>: LF` for each matching line; undefined when it failed. */
async function runRipgrep(
  pattern: LinePattern,
  paths: readonly string[],
  limit: number,
  maxBytes: number,
  stop: AbortSignal,
): Promise<Buffer | undefined> {
  // The rest of the line belongs to the match: one report a line, however often the pattern is in it.
  const whole = `(?:${pattern.rust})(?-u:[^\\n]*)`;
  const options = `--no-config --no-messages --no-heading --with-filename --null --line-number --only-matching --color=never --text --no-mmap --encoding=none --max-filesize=${maxBytes} --max-count=${limit} --replace=`;
  const child = spawn("rg", [...options.split(" "), "--regexp", whole, "--", ...paths], {
    stdio: ["ignore", "pipe", "ignore"],
    env: { PATH: process.env["PATH"], LC_ALL: "C" },
  });
  return await new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = (): void => void child.kill("SIGKILL");
    stop.addEventListener("abort", end, { once: true });
    child.stdout.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxOutputBytes) end();
    });
    child.on("error", () => resolve(undefined));
    child.on("close", (code) => {
      stop.removeEventListener("abort", end);
      // 1: nothing found; 2 with output: a file could not be read.
      const fine = code === 0 || code === 1 || (code === 2 && bytes > 0);
      resolve(fine ? Buffer.concat(chunks) : undefined);
    });
  });
}

function parseOutput(
  output: Buffer,
  paths: readonly string[],
): readonly (readonly number[])[] | undefined {
  const lines = new Map<string, number[]>(paths.map((path) => [path, []]));
  for (let at = 0; at < output.length;) {
    const nul = output.indexOf(0, at);
    const end = output.indexOf(10, nul);
    const found = nul < 0 || end < 0 ? undefined : lines.get(output.toString("utf8", at, nul));
    const number = /^(\d+):$/.exec(output.toString("latin1", nul + 1, end))?.[1];
    if (found === undefined || number === undefined) return undefined;
    found.push(Number(number));
    at = end + 1;
  }
  return [...lines.values()].map((found) => found.toSorted((a, b) => a - b));
}
