import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type Pair,
  type YAMLMap,
} from "yaml";
import type * as z from "zod";
import { LonghaulError } from "../contracts/errors.js";
import { nearestFirst } from "./nearest.js";
import { scenarioKeys, scenarioSchema, type Scenario } from "./scenario.js";

/** Reads a scenario from YAML text; `source` names it in INVALID_SCENARIO, as `source:line:column: …`. */
export function parseScenario(text: string, source: string): Scenario {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const fail = (offset: number, message: string, more = 0): never => {
    const { line, col } = lines.linePos(offset);
    const rest = more > 0 ? ` (and ${more} more)` : "";
    throw new LonghaulError(
      "INVALID_SCENARIO",
      `${source}:${Math.max(line, 1)}:${Math.max(col, 1)}: ${message}${rest}`,
    );
  };
  const [mistake] = document.errors;
  if (mistake !== undefined)
    return fail(mistake.pos[0], oneLine(mistake.message), document.errors.length - 1);
  const result = scenarioSchema.safeParse(document.toJS());
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue === undefined) return fail(0, "expected a scenario");
  return fail(offsetOf(document, issue), describeIssue(issue), result.error.issues.length - 1);
}

/** Checks a scenario given in code; INVALID_SCENARIO names it and the place. */
export function checkScenario(value: unknown, name: string): Scenario {
  const result = scenarioSchema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const message = issue === undefined ? "expected a scenario" : describeIssue(issue);
  throw new LonghaulError("INVALID_SCENARIO", `scenario "${name}": ${message}`);
}

/** Loads scenario files; a file is read again only when it has changed. INVALID_SCENARIO when it cannot be read. */
export function createScenarioLoader(): (path: string) => Scenario {
  const loaded = new Map<string, { readonly version: string; readonly scenario: Scenario }>();
  return (path) => {
    const file = resolve(path);
    const { version, text } = readIfChanged(file, loaded.get(file)?.version);
    const known = loaded.get(file);
    if (text === undefined && known !== undefined) return known.scenario;
    const scenario = parseScenario(text ?? "", file);
    loaded.set(file, { version, scenario });
    return scenario;
  };
}

function readIfChanged(
  file: string,
  known: string | undefined,
): { readonly version: string; readonly text?: string } {
  try {
    const { mtimeMs, size, ino } = statSync(file);
    const version = `${ino} ${size} ${mtimeMs}`;
    return version === known ? { version } : { version, text: readFileSync(file, "utf8") };
  } catch (error) {
    const reason =
      error instanceof Error ? error.message.replace(/, \w+(?: '.*)?$/su, "") : String(error);
    throw new LonghaulError(
      "INVALID_SCENARIO",
      `cannot read scenario file ${file}: ${reason}; expected the path of a YAML file (docs/scenarios.md)`,
      { cause: error },
    );
  }
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const place = issue.path
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("");
  const prefix = place === "" ? "" : `${place.slice(1)}: `;
  if (issue.code !== "unrecognized_keys")
    return prefix + oneLine(issue.message.replace(/^Invalid (input|option): /u, ""));
  const [key = ""] = issue.keys;
  const owner = issue.path.findLast((part) => typeof part === "string") ?? "";
  const known = nearestFirst(key, scenarioKeys[owner] ?? []);
  return `${prefix}unknown key "${key}"; expected one of: ${known.join(", ")}`;
}

/** Where the mistake is: at an unknown key, else at the value, else at the nearest thing around it. */
function offsetOf(document: Document, issue: z.core.$ZodIssue): number {
  const unknownKey = issue.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const key of issue.path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isSeq(node)) node = node.items[Number(key)];
    else if (isMap(node)) node = pairOf(node, key)?.value;
    else return offset;
    offset = startOf(node) ?? offset;
  }
  if (isAlias(node)) node = node.resolve(document);
  return (isMap(node) && startOf(pairOf(node, unknownKey)?.key)) || offset;
}

function pairOf(map: YAMLMap, key: PropertyKey | undefined): Pair | undefined {
  return map.items.find((pair) => isScalar(pair.key) && pair.key.value === key);
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, " ");
}
