// Tools of your own, in a file that a worker loads: longhaul worker --tools ./my-tools.ts
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { defineTool } from "longhaul/tools";
import * as z from "zod";

/** Works on the session's files, so it runs on the session's host. It only reads: it may overlap and may be run again. */
const countWords = defineTool({
  name: "count_words",
  description: "Count the lines, words and bytes of a text file in the workspace.",
  parameters: z.object({ path: z.string().min(1).describe("File to count.") }),
  parallel: true,
  idempotent: true,
  async execute({ path }, { cwd = "/", signal }) {
    const text = await readFile(resolve(cwd, path), { encoding: "utf8", signal });
    const words = text.match(/\S+/g)?.length ?? 0;
    const lines = text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
    return {
      text: `${path}: ${lines} lines, ${words} words, ${Buffer.byteLength(text)} bytes`,
      meta: { words },
    };
  },
});

const answers: Readonly<Record<string, string>> = {
  longhaul: "A backend that keeps AI-agent sessions alive.",
  temporal: "A service that keeps the history of a program and replays it after a crash.",
};

/** Needs no files, so any worker may run it; slow, so its calls overlap, and a cancel is heeded at once. */
const lookUp = defineTool({
  name: "look_up",
  description: "Look up what a word means. Takes a while; look up several words at once.",
  parameters: z.object({
    word: z.string().min(1).describe("Word to look up."),
    delayMs: z.int().min(0).max(10_000).default(500).describe("How long the service takes."),
  }),
  workspace: false,
  parallel: true,
  idempotent: true,
  timeoutMs: 15_000,
  async execute({ word, delayMs }, { signal }) {
    await wait(delayMs, undefined, { signal });
    return answers[word.toLowerCase()] ?? `Nothing is known about ${word}.`;
  },
});

export default [countWords, lookUp];
