import { refuse, type Refusal } from "../contracts/errors.js";
import type { SessionHeader } from "../contracts/log.js";
import { isFields, type Fields } from "./reference-entry.js";

/** First line of an exported log; the depth is always there (spec/harness §11). */
export function headerLine(header: SessionHeader): Fields {
  const { version, id, createdAt, cwd, parentSession, seedLength, origin } = header;
  return {
    type: "session",
    version,
    id,
    createdAt,
    ...(cwd === undefined ? {} : { cwd }),
    ...(parentSession === undefined ? {} : { parentSession }),
    ...(seedLength === undefined ? {} : { seedLength }),
    ...(origin === undefined ? {} : { origin }),
    delegationDepth: header.delegationDepth ?? 0,
  };
}

export type DecodedHeader =
  | { readonly ok: true; readonly header: SessionHeader; readonly agentPreset?: string }
  | Refusal;

/** Strict in what it knows; keys it does not know are not kept. Depth 0 is absent. */
export function decodeHeaderLine(line: unknown): DecodedHeader {
  if (!isFields(line) || line["type"] !== "session")
    return corrupt("expected the header of a log, a JSON object of the type session");
  const { version, id, createdAt, cwd, parentSession, seedLength, origin, agentPreset } = line;
  const depth = line["delegationDepth"];
  if (!Number.isInteger(version)) return corrupt("the header needs a whole version");
  if (version !== 0)
    return refuse(
      "LOG_UNSUPPORTED",
      Number(version) > 0
        ? `line 1: the log has version ${Number(version)}, this release reads version 0; upgrade to read it`
        : `line 1: the log has version ${Number(version)}, from which no upgrade path leads to version 0`,
    );
  if (typeof id !== "string" || id === "") return corrupt("the header needs the session's id");
  if (!isCount(createdAt)) return corrupt("createdAt is a number of milliseconds");
  if (!isCount(depth)) return corrupt("delegationDepth is a whole number from 0");
  if (!isText(cwd) || !isText(parentSession) || !isText(agentPreset))
    return corrupt("cwd, parentSession and agentPreset are texts");
  if (seedLength !== undefined && !isCount(seedLength))
    return corrupt("seedLength is a number of entries");
  if (origin !== undefined && origin !== "subagent") return corrupt("origin can be subagent only");
  return {
    ok: true,
    header: {
      version,
      id,
      createdAt,
      ...(cwd === undefined ? {} : { cwd }),
      ...(parentSession === undefined ? {} : { parentSession }),
      ...(seedLength === undefined ? {} : { seedLength }),
      ...(origin === undefined ? {} : { origin }),
      ...(depth === 0 ? {} : { delegationDepth: depth }),
    },
    ...(agentPreset === undefined ? {} : { agentPreset }),
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && !Object.is(value, -0);
}

function isText(value: unknown): value is string | undefined {
  return value === undefined || typeof value === "string";
}

function corrupt(problem: string): Refusal {
  return refuse("LOG_CORRUPT", `line 1: ${problem}`);
}
