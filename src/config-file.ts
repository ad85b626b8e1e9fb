import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isMap, isNode, isScalar, LineCounter, parseDocument, type Document } from "yaml";
import * as z from "zod";
import type { SessionConfig, SessionLimits } from "./contracts/config.js";
import { LonghaulError } from "./contracts/errors.js";
import type { RequestConfig } from "./contracts/header.js";
import type { JobsConfig } from "./contracts/jobs.js";
import {
  compactionSchema,
  jobsConfigSchema,
  scheduleSchema,
  timeContextSchema,
} from "./contracts/schemas/config.js";
import { checkTodoPolicy } from "./domain/todo.js";
import { makeDirectory } from "./store/make-directory.js";

/** `config.yaml` after checking. */
export interface FileConfig {
  readonly allowParallelInProgress: boolean;
  readonly model?: string;
  readonly request: Omit<RequestConfig, "provider" | "model">;
  readonly system?: string;
  readonly outsideWorkspace?: boolean;
  readonly deny?: readonly string[];
  readonly ask?: readonly string[];
  /** Is `web_fetch` offered: to any public host, or to these alone? (docs/tools.md) */
  readonly webFetch?: boolean | readonly string[];
  readonly limits: Partial<SessionLimits>;
  /** Background jobs (docs/jobs.md). */
  readonly jobs?: Partial<JobsConfig>;
  /** Reminders, and the time for the model (docs/reminders.md). */
  readonly schedule?: Exclude<SessionConfig["schedule"], undefined>;
  readonly timeContext?: Exclude<SessionConfig["timeContext"], undefined>;
  /** When a transcript is shortened (docs/compaction.md). */
  readonly compaction?: Exclude<SessionConfig["compaction"], undefined>;
  /** By the provider's name (docs/models.md). */
  readonly providers?: Readonly<Record<string, ProviderChoices>>;
  /** By `provider/model`. */
  readonly models?: Readonly<Record<string, ModelChoices>>;
}

export interface ProviderChoices {
  readonly baseUrl?: string;
  readonly firstTokenMs?: number;
  readonly idleMs?: number;
}

export interface ModelChoices {
  readonly contextWindow?: number;
  readonly maxTokens?: number;
  readonly reasoningEffort?: string;
  /** Does it see the pictures of tool results? */
  readonly images?: boolean;
}

/** Reads and checks the file, writing it first when there is none. Throws INVALID_CONFIG. */
export function readConfigFile(path: string): FileConfig {
  return parseConfig(
    readOrCreate(path, () => firstConfig),
    path,
  );
}

/** Reads a small file; when there is none, makes it whole at once, so that of two processes one wins for both. */
export function readOrCreate(path: string, content: () => string): string {
  try {
    const found = readIfThere(path);
    if (found !== undefined) return found;
    makeHome(dirname(path));
    const draft = `${path}.${randomUUID()}`;
    try {
      writeFileSync(draft, content(), { flag: "wx", mode: 0o600 });
      linkSync(draft, path);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    } finally {
      rmSync(draft, { force: true });
    }
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof LonghaulError) throw error;
    const reason = codeOf(error) ?? String(error);
    throw new LonghaulError(
      "INVALID_CONFIG",
      `${path} expected a readable file or a place to write it, got ${reason}; correct it or choose another --home`,
      {
        cause: error,
      },
    );
  }
}

function makeHome(path: string): void {
  try {
    makeDirectory(path, 0o700);
  } catch (error) {
    const reason =
      error instanceof Error ? error.message.replace(/, mkdir '.*$/su, "") : String(error);
    throw new LonghaulError(
      "INVALID_CONFIG",
      `the data directory ${path} cannot be created (${reason}); choose another --home`,
      { cause: error },
    );
  }
}

const firstConfig = `# Longhaul's choices for this data directory. Flags and environment variables win over this file.

# May several todo items be in progress at the same time? true: as many as are worked on in parallel
# (subagents, background commands); false: at most one. It has no default.
allowParallelInProgress: true

# The model of a session that names none, as provider/model or scripted:<file>.
# model: provider/model

# May models read public web pages (web_fetch)? true, or the hosts they may ask. Default: no.
# webFetch: ["docs.example.com", "*.example.org"]

# May a session set reminders, for which it gets a turn when they are due? May its model know the time? Default: no
# (docs/reminders.md). A reminder costs a model call each time it is due, also when nobody is there.
# schedule: true
# timeContext: true

# When is a long transcript shortened and summarised by its model? Default: before it fills 80 % of the model's context
# window, and when a request was refused as too large; false: only by longhaul compact (docs/compaction.md).
# compaction: { thresholdRatio: 0.7 }

# Where a provider is, and what is known of a model (docs/models.md). Keys are never here: they are in the environment.
# providers: { deepseek: { baseUrl: https://proxy.example.org } }
# models: { provider/model: { contextWindow: 128000, maxTokens: 8000 } }
`;

const name = z.string().min(1);
const count = z.int();

const limitKeys = {
  maxParallelToolCalls: count.min(1).max(100).exactOptional(),
  maxInlineBytes: count.min(1_000).max(200_000).exactOptional(),
  maxModelRetries: count.min(0).max(100).exactOptional(),
  retryBaseMs: count.min(1).exactOptional(),
  retryCapMs: count.min(1).exactOptional(),
  modelTimeoutMs: count.min(1_000).exactOptional(),
};
const requestKeys = {
  reasoningEffort: name.exactOptional(),
  temperature: z.number().min(0).max(2).exactOptional(),
  maxTokens: count.min(1).exactOptional(),
  stop: z.array(name).exactOptional(),
};
const sessionKeys = {
  allowParallelInProgress: z.boolean(),
  model: name.exactOptional(),
  system: z.string().exactOptional(),
  outsideWorkspace: z.boolean().exactOptional(),
  deny: z.array(name).exactOptional(),
  ask: z.array(name).exactOptional(),
  webFetch: z
    .union([z.boolean(), z.array(name)], { error: "expected true, false or a list of hosts" })
    .exactOptional(),
};
const providerKeys = {
  baseUrl: name.exactOptional(),
  firstTokenMs: count.min(1).exactOptional(),
  idleMs: count.min(1).exactOptional(),
};
const modelKeys = {
  contextWindow: count.min(1).exactOptional(),
  maxTokens: count.min(1).exactOptional(),
  reasoningEffort: name.exactOptional(),
  images: z.boolean().exactOptional(),
};
/** Whose rules are the session's own. */
const ownKeys = {
  jobs: jobsConfigSchema.exactOptional(),
  schedule: scheduleSchema.exactOptional(),
  timeContext: timeContextSchema.exactOptional(),
  compaction: compactionSchema.exactOptional(),
};
const providerTables = {
  providers: z.record(name, z.strictObject(providerKeys)).exactOptional(),
  models: z.record(name, z.strictObject(modelKeys)).exactOptional(),
};
const ConfigFile = z.strictObject({
  ...sessionKeys,
  ...requestKeys,
  limits: z.strictObject(limitKeys).exactOptional(),
  ...ownKeys,
  ...providerTables,
});

function parseConfig(text: string, path: string): FileConfig {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [broken] = document.errors;
  if (broken !== undefined) {
    const { line, col } = lines.linePos(broken.pos[0]);
    throw invalid(`${path}:${line}:${col}: ${oneLine(broken.message)}`);
  }
  const value: unknown = document.toJS() ?? {};
  if (!isRecord(value))
    throw invalid(`${path}: $ expected a map of settings, like allowParallelInProgress: true`);
  const policy = checkTodoPolicy(value["allowParallelInProgress"]);
  if (policy !== undefined)
    throw invalid(`${place(document, lines, path, ["allowParallelInProgress"])}: ${policy}`);
  const checked = ConfigFile.safeParse(value);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    if (issue === undefined) throw invalid(`${path}: cannot be read`);
    const at = [
      ...issue.path,
      ...(issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : []),
    ];
    throw invalid(`${place(document, lines, path, at)}: ${keyPath(at)} ${complaint(issue)}`);
  }
  return {
    ...z.object(sessionKeys).parse(checked.data),
    request: z.object(requestKeys).parse(checked.data),
    limits: checked.data.limits ?? {},
    ...z.object(ownKeys).parse(checked.data),
    ...z.object(providerTables).parse(checked.data),
  };
}

/** `file:line:column` of a key, or the file alone when the key is not there. */
function place(
  document: Document,
  lines: LineCounter,
  path: string,
  at: readonly PropertyKey[],
): string {
  const parent: unknown =
    at.length === 1 ? document.contents : document.getIn(at.slice(0, -1), true);
  const pair = isMap(parent)
    ? parent.items.find((item) => isScalar(item.key) && item.key.value === at.at(-1))
    : undefined;
  const node: unknown = pair?.key ?? document.getIn(at, true);
  const range = isNode(node) ? node.range : undefined;
  if (range === undefined || range === null) return path;
  const { line, col } = lines.linePos(range[0]);
  return `${path}:${line}:${col}`;
}

function keyPath(at: readonly PropertyKey[]): string {
  return `$${at.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("")}`;
}

function complaint(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "unrecognized_keys":
      return `is not a setting; known here: ${Object.keys(keysAt(issue.path)).join(", ")}`;
    case "invalid_type":
      return `expected ${issue.expected}`;
    case "too_small":
      return `expected at least ${String(issue.minimum)}`;
    case "too_big":
      return `expected at most ${String(issue.maximum)}`;
    default:
      return oneLine(issue.message);
  }
}

/** The settings that may stand at a place of the file. */
function keysAt([first]: readonly PropertyKey[]): object {
  const inner: Readonly<Record<PropertyKey, object>> = {
    limits: limitKeys,
    providers: providerKeys,
    models: modelKeys,
  };
  return (first === undefined ? undefined : inner[first]) ?? ConfigFile.shape;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string"
    ? error.code
    : undefined;
}

function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function invalid(message: string): LonghaulError {
  return new LonghaulError("INVALID_CONFIG", message);
}
