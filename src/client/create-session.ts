import { WorkflowExecutionAlreadyStartedError, type Client } from "@temporalio/client";
import {
  defineSearchAttributeKey,
  SearchAttributeType,
  type SearchAttributePair,
} from "@temporalio/common";
import { LonghaulError } from "../contracts/errors.js";
import { queues, workflowTypes, type SearchAttributeName } from "../contracts/names.js";
import { createSessionSchema, maxCommandBytes } from "../contracts/schemas/session.js";
import { parseInput } from "../contracts/schemas/parse.js";
import type { SessionInput } from "../contracts/session.js";
import { attemptUntil, type Bounded } from "./attempts.js";
import { failureOf } from "./workflow-failure.js";
import type { CreateSessionOptions } from "./types.js";
import { freshSessionId } from "./update-id.js";

/** What visibility cannot answer without search attributes. */
export interface SessionMemo {
  readonly title?: string;
  readonly host?: string;
  readonly parent?: string;
  /** When it was created, epoch ms: the start of a later run says nothing of it. */
  readonly createdAt?: number;
}

/** What a session begins with that has the log of another. */
export interface SeedSource {
  readonly kind: "fork" | "import";
  /** Archives the seed under the session's id and returns its checkpoint. SESSION_EXISTS, before anything is stored. */
  plant(id: string): Promise<unknown>;
}

/** Starts the session's workflow and returns its id. INVALID_INPUT, SESSION_EXISTS, TEMPORAL_UNREACHABLE. */
export async function startSession(
  client: Client,
  bounds: Bounded,
  options: CreateSessionOptions,
  attributes: readonly SearchAttributeName[],
  timeoutMs: number,
  seed?: SeedSource,
): Promise<string> {
  const {
    id = freshSessionId(Date.now()),
    config,
    host,
    title,
    parentSession,
  } = parseInput(createSessionSchema, options, "createSession");
  const input: SessionInput = {
    v: 1,
    config,
    attributes,
    ...(host === undefined ? {} : { host }),
    ...(title === undefined ? {} : { title }),
    ...(parentSession === undefined ? {} : { parentSession }),
  };
  const bytes = Buffer.byteLength(JSON.stringify(input), "utf8");
  if (bytes > maxCommandBytes) {
    const advice = "shorten the system text";
    throw new LonghaulError(
      "MESSAGE_TOO_LARGE",
      `createSession: expected at most ${maxCommandBytes} bytes, got ${bytes}; ${advice}`,
    );
  }
  const past =
    seed === undefined
      ? {}
      : {
          checkpoint: await seed.plant(id),
          seed: seed.kind,
        };
  const memo: SessionMemo = {
    createdAt: Date.now(),
    ...(title === undefined ? {} : { title }),
    ...(host === undefined ? {} : { host }),
    ...(parentSession === undefined ? {} : { parent: parentSession }),
  };
  const start = (workflowIdReusePolicy: "REJECT_DUPLICATE" | "ALLOW_DUPLICATE_FAILED_ONLY") =>
    attemptUntil(
      bounds,
      {
        deadline: Date.now() + timeoutMs,
        attemptMs: timeoutMs,
        gone: () =>
          Promise.resolve(
            new LonghaulError("NAMESPACE_NOT_FOUND", "the namespace does not exist any more"),
          ),
        late: (last) =>
          Promise.resolve(
            new LonghaulError(
              "TEMPORAL_UNREACHABLE",
              `Temporal did not answer within ${timeoutMs / 1000} s (${last.message}); session ${id} may or may not have been started`,
            ),
          ),
      },
      async () => {
        try {
          await client.workflow.start(workflowTypes.session, {
            workflowId: id,
            taskQueue: queues.sessions,
            args: [{ ...input, ...past }],
            workflowIdReusePolicy,
            memo: { ...memo },
            staticSummary: title ?? id,
            staticDetails: describeSession(options),
            typedSearchAttributes: initialAttributes(attributes, parentSession),
          });
          return true;
        } catch (error) {
          if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
          throw error;
        }
      },
    );
  if (await start("REJECT_DUPLICATE")) return id;
  const failure = await failureOf(client, bounds, id, timeoutMs);
  // Nothing ever happened in it: the same id may be tried again once a host is there.
  if (failure?.type === "NO_HOST" && (await start("ALLOW_DUPLICATE_FAILED_ONLY"))) return id;
  throw usedId(id);
}

export function usedId(id: string): LonghaulError {
  return new LonghaulError(
    "SESSION_EXISTS",
    `session ${id} exists already; use it by its id, or choose another one`,
  );
}

const stateKey = defineSearchAttributeKey("LonghaulState", SearchAttributeType.KEYWORD);
const parentKey = defineSearchAttributeKey("LonghaulParent", SearchAttributeType.KEYWORD);

function initialAttributes(
  registered: readonly SearchAttributeName[],
  parent: string | undefined,
): SearchAttributePair[] {
  const pairs: SearchAttributePair[] = [];
  if (registered.includes("LonghaulState")) pairs.push({ key: stateKey, value: "idle" });
  if (parent !== undefined && registered.includes("LonghaulParent"))
    pairs.push({ key: parentKey, value: parent });
  return pairs;
}

/** Markdown for Temporal UI (design D13). */
function describeSession({ config, host, parentSession }: CreateSessionOptions): string {
  const rows = [
    `- model: \`${config.request.provider}/${config.request.model}\``,
    config.cwd === undefined ? undefined : `- workspace: \`${config.cwd}\``,
    config.worldTools
      ? `- host: ${host === undefined ? "whichever answers" : `\`${host}\``}`
      : "- host: none (state tools only)",
    parentSession === undefined ? undefined : `- parent: \`${parentSession}\``,
  ];
  return rows.filter((row) => row !== undefined).join("\n");
}
