import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import * as z from "zod";

import { LonghaulError } from "../contracts/errors.js";
import { builtinTools } from "./builtin.js";
import type { JobKindDefinition, ToolDefinition } from "./define.js";
import { importSource, SourceError } from "./load-source.js";
import { isReservedName } from "./registry.js";
import { reasonOf } from "./workspace-path.js";

export interface LoadOptions {
  /** Tools that are there already, whose names cannot be taken. Default: the built-in ones. */
  readonly taken?: readonly ToolDefinition[];
  /** For a file that does not come to its end. Default 30 s. */
  readonly timeoutMs?: number;
}

const definition = z.object({
  row: z.object({
    name: z.string(),
    description: z.string(),
    parameters: z.record(z.string(), z.unknown()),
    where: z.enum(["host", "shared"]),
    parallel: z.boolean(),
    idempotent: z.boolean(),
  }),
  spill: z.boolean(),
  prepare: z.custom<ToolDefinition["prepare"]>((value) => typeof value === "function"),
});

const kindDefinition = z.object({
  jobKind: z.object({
    kind: z.string(),
    output: z.enum(["stream", "final"]),
    outputLimitBytes: z.number().optional(),
  }),
  reattaches: z.boolean(),
  prepare: z.custom<JobKindDefinition["prepare"]>((value) => typeof value === "function"),
});

export interface LoadedTools {
  readonly tools: readonly ToolDefinition[];
  readonly jobKinds: readonly JobKindDefinition[];
}

/**
 * Loads a TypeScript or JavaScript file whose default export is a tool made with `defineTool`, a job kind made with
 * `defineJobKind`, or a list of them. The file is run. Throws INVALID_CONFIG with file and line in one line for whatever is
 * wrong with it.
 */
export async function loadToolsFile(
  path: string,
  { taken = builtinTools, timeoutMs = 30_000 }: LoadOptions = {},
): Promise<LoadedTools> {
  const real = resolve(path);
  const facts = await stat(real).catch((error: unknown) => {
    throw invalid(`cannot read the tools file ${path}: ${reasonOf(error)}`);
  });
  if (!facts.isFile()) throw invalid(`the tools file ${path} is not a file`);
  if (!/\.[cm]?[jt]s$/.test(real))
    throw invalid(`the tools file ${path} must end in .ts, .mts, .js or .mjs`);
  const source = await readFile(real, "utf8");
  const exported = await importSource(real, timeoutMs).catch((error: unknown) => {
    if (!(error instanceof SourceError)) throw error;
    const file = error.file === undefined || error.file === real ? path : error.file;
    throw invalid(`${file}${error.line === undefined ? "" : `:${error.line}`}: ${error.message}`);
  });
  const lines = source.split("\n");
  const at = (line: number | undefined, message: string): LonghaulError =>
    invalid(`${path}:${line ?? 1}: ${message}`);
  const exportLine = lineOf(lines, /^\s*export\s+default\b|^\s*export\s*\{.*\bdefault\b/);
  if (exported === undefined)
    throw at(
      exportLine,
      "there is no default export; export a tool made with defineTool, or a list of them",
    );
  const items: readonly unknown[] = Array.isArray(exported) ? exported : [exported];
  if (items.length === 0) throw at(exportLine, "the list of tools is empty");
  const tools: ToolDefinition[] = [];
  const jobKinds: JobKindDefinition[] = [];
  for (const [index, item] of items.entries()) {
    if (isKind(item)) {
      const { kind } = item.jobKind;
      if (kind === "bash" || jobKinds.some(({ jobKind }) => jobKind.kind === kind)) {
        const by = kind === "bash" ? "the built-in one" : "another one of this file";
        throw at(
          linesOf(lines, kind).at(-1) ?? exportLine,
          `the job kind ${kind} is taken by ${by}; choose another name`,
        );
      }
      jobKinds.push(item);
      continue;
    }
    if (!isDefinition(item)) {
      const which = Array.isArray(exported)
        ? `item ${index + 1} of the default export`
        : "the default export";
      throw at(
        exportLine,
        `${which} is no tool and no job kind; make it with defineTool or defineJobKind from "longhaul/tools"`,
      );
    }
    const { name } = item.row;
    const places = linesOf(lines, name);
    const clash = (by: string): LonghaulError =>
      at(places.at(-1) ?? exportLine, `${by}; choose another name`);
    if (isReservedName(name))
      throw clash(`the name ${name} is reserved for the session's own tools`);
    if (taken.some(({ row }) => row.name === name)) {
      const kind = builtinTools.some(({ row }) => row.name === name) ? "built-in tool" : "tool";
      throw clash(`the name ${name} is taken by the ${kind} ${name}`);
    }
    if (tools.some(({ row }) => row.name === name)) {
      const other = places.length > 1 ? ` (line ${places[0]})` : "";
      throw clash(`the name ${name} is taken by another tool of this file${other}`);
    }
    tools.push(item);
  }
  return { tools, jobKinds };
}

function isKind(value: unknown): value is JobKindDefinition {
  return kindDefinition.safeParse(value).success;
}

function isDefinition(value: unknown): value is ToolDefinition {
  return definition.safeParse(value).success;
}

function lineOf(lines: readonly string[], pattern: RegExp): number | undefined {
  const index = lines.findIndex((line) => pattern.test(line));
  return index < 0 ? undefined : index + 1;
}

/** Lines in which the name stands in quotes. */
function linesOf(lines: readonly string[], name: string): readonly number[] {
  return lines.flatMap((line, index) =>
    ['"', "'", "`"].some((quote) => line.includes(quote + name + quote)) ? [index + 1] : [],
  );
}

function invalid(message: string): LonghaulError {
  return new LonghaulError("INVALID_CONFIG", message.replaceAll(/\s*\n\s*/g, " "));
}
