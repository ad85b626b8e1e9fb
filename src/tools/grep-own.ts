import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import * as z from "zod";

import type { LineSearch } from "./grep-engine.js";
import { invalidByte, type LinePattern } from "./grep-pattern.js";

/**
 * Runs in a thread of its own, so that a long search neither holds up the process nor outlives its deadline. As text,
 * because a thread is loaded by Node itself, which may be running from TypeScript.
 */
const threadScript = `
const { parentPort, workerData } = require("node:worker_threads");
const { readFileSync, statSync } = require("node:fs");
const { isUtf8 } = require("node:buffer");
const { RE2JS } = require(workerData.re2js);
const pattern = RE2JS.compile(workerData.pattern);

function linesOf(path, limit) {
  let bytes;
  try {
    if (statSync(path).size > workerData.maxBytes) return [];
    bytes = readFileSync(path);
  } catch {
    return [];
  }
  if (bytes.length > workerData.maxBytes || bytes.includes(0)) return [];
  const found = [];
  const whole = isUtf8(bytes) ? bytes.toString("utf8") : undefined;
  const source = whole ?? bytes;
  const text = (from, to) => {
    if (whole !== undefined) return whole.slice(from, to);
    const line = bytes.subarray(from, to);
    const decoded = line.toString("utf8");
    return isUtf8(line) ? decoded : decoded.replaceAll("\\uFFFD", workerData.invalidByte);
  };
  const newline = whole === undefined ? 10 : "\\n";
  for (let from = 0, number = 1; from < source.length; number += 1) {
    const end = source.indexOf(newline, from);
    const to = end < 0 ? source.length : end;
    if (pattern.test(text(from, to))) {
      found.push(number);
      if (found.length >= limit) break;
    }
    from = to + 1;
  }
  return found;
}

parentPort.on("message", ({ paths, limit }) => {
  parentPort.postMessage(paths.map((path) => linesOf(path, limit)));
});
`;

const answer = z.array(z.array(z.int()));

/** The engine that needs nothing on the host: re2js, whose time is linear in the text. */
export function openOwnSearch(
  pattern: LinePattern,
  maxBytes: number,
  stop: AbortSignal,
): LineSearch {
  const re2js = createRequire(import.meta.url).resolve("re2js");
  const thread = new Worker(threadScript, {
    eval: true,
    workerData: { pattern: pattern.re2, invalidByte, maxBytes, re2js },
    resourceLimits: { maxOldGenerationSizeMb: 512 },
    execArgv: [],
    env: {},
  });
  let failure: Error | undefined;
  let ended = false;
  thread.on("error", (error) => (failure = error)).on("exit", () => (ended = true));
  return {
    async lines(paths, limit) {
      if (failure !== undefined) throw failure;
      if (ended || stop.aborted) return undefined;
      return await new Promise((resolve, reject) => {
        const settle = (): void => {
          thread.off("message", onMessage).off("error", onError).off("exit", onExit);
          stop.removeEventListener("abort", onStop);
        };
        const onMessage = (message: unknown): void => {
          settle();
          resolve(answer.parse(message));
        };
        const onError = (error: Error): void => {
          settle();
          reject(error);
        };
        const onExit = (): void => {
          settle();
          resolve(undefined);
        };
        const onStop = (): void => void thread.terminate();
        thread.on("message", onMessage).on("error", onError).on("exit", onExit);
        stop.addEventListener("abort", onStop, { once: true });
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
        thread.postMessage({ paths, limit });
      });
    },
    async close() {
      await thread.terminate();
    },
  };
}
