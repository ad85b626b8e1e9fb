import { defaultLimits, type SessionConfig } from "../../src/contracts/config.js";
import type { AssistantBlock, ToolCallBlock } from "../../src/contracts/content.js";
import type { Refusal } from "../../src/contracts/errors.js";
import type { EndReason, EventType, LogEntry } from "../../src/contracts/log.js";
import type { FinishReason, ModelOutcome } from "../../src/contracts/model.js";
import type { SendMode, SendResult } from "../../src/contracts/session.js";
import type { ToolOutcome, ToolRow } from "../../src/contracts/tools.js";
import { sendMessage } from "../../src/domain/commands.js";
import type { Effect, Op } from "../../src/domain/effects.js";
import { Session } from "../../src/domain/session.js";
import { stateToolRows } from "../../src/domain/state-tools.js";
import { PureRun, type Script } from "./pure-driver.js";

export const config: SessionConfig = {
  request: { provider: "scripted", model: "m" },
  allowParallelInProgress: true,
  worldTools: false,
  outsideWorkspace: false,
  deny: [],
  ask: [],
  limits: defaultLimits,
};

/** A session that is open and has its tool table: `todo_write` and the given rows. Its clock counts 1, 2, 3… */
export function openSession(
  changes: Partial<SessionConfig> = {},
  rows: readonly ToolRow[] = [],
  id = "s1",
): Session {
  let now = 0;
  const session = new Session(id, () => (now += 1));
  const full = { ...config, ...changes };
  session.record(
    {
      type: "session/open",
      data: { header: { version: 0, id, createdAt: 0 }, config: full },
    },
    {
      type: "session/tools",
      data: { epoch: 0, tools: [...stateToolRows(full), ...rows], jobKinds: [] },
    },
  );
  return session;
}

/** A row of the tool table that runs on a host. */
export function row(name: string, more: Partial<ToolRow> = {}): ToolRow {
  return {
    name,
    description: `the tool ${name}`,
    parameters: { type: "object" },
    where: "host",
    parallel: false,
    idempotent: false,
    ...more,
  };
}

export function send(
  session: Session,
  mode: SendMode,
  id: string,
  content = id,
): SendResult | Refusal {
  return sendMessage(session, { id, mode, content });
}

/** A reply of text. */
export function text(said: string, finish: FinishReason = "stop"): ModelOutcome {
  return { kind: "reply", content: [{ type: "text", text: said }], finish };
}

/** A reply that calls tools, e.g. `calls("a", "b")`; ids c1, c2… */
export function calls(...made: (string | Partial<ToolCallBlock>)[]): ModelOutcome {
  const content = made.map((call, index): AssistantBlock => {
    const given = typeof call === "string" ? { name: call } : call;
    return { type: "tool-call", callId: `c${index + 1}`, name: "t", arguments: "{}", ...given };
  });
  return { kind: "reply", content, finish: "tool-calls" };
}

export function output(said: string, more: Partial<ToolOutcome> = {}): ToolOutcome {
  return { content: [{ type: "text", text: said }], isError: false, ...more };
}

export function failure(code: "SERVER" | "AUTH" | "SURFACE_MISMATCH" | "RATE_LIMIT"): ModelOutcome {
  return { kind: "failure", failure: { code, message: `failed with ${code}` } };
}

/** A model that says one outcome after the other, then `ok`. */
export function saying(...outcomes: readonly ModelOutcome[]): () => ModelOutcome {
  const left = [...outcomes];
  return () => left.shift() ?? text("ok");
}

/** Runs a whole script on a session and returns the run. */
export function run(session: Session, script: Script = {}): PureRun {
  const driven = new PureRun(session, script);
  driven.untilIdle();
  return driven;
}

/** The entries of some types, in order. */
export function entriesOf<T extends EventType>(
  session: Session,
  ...types: readonly T[]
): readonly Extract<LogEntry, { type: T }>[] {
  return session.log.entries.filter((entry): entry is Extract<LogEntry, { type: T }> =>
    types.some((type) => type === entry.type),
  );
}

/** Types of the entries after `seq`, in order. */
export function typesOf(session: Session, after = 1): readonly EventType[] {
  return session.log.entries.slice(after + 1).map((entry) => entry.type);
}

/** The one text of each tool result, in order. */
export function resultTexts(session: Session): readonly string[] {
  return entriesOf(session, "tool/result").map(({ data }) => {
    const [block] = data.message.content;
    return block?.type === "tool-result" ? block.content.map((part) => part.text).join("|") : "";
  });
}

export function endsOf(session: Session): readonly EndReason[] {
  return entriesOf(session, "turn/end").map(({ data }) => data.reason);
}

/** The text of each `user/message`, in order. */
export function userTexts(session: Session): readonly string[] {
  return entriesOf(session, "user/message").map(({ data }) => {
    const [block] = data.message.content;
    return block?.type === "text" ? block.text : "";
  });
}

type When = (effect: Effect, run: PureRun) => boolean;

/** Does `act` before the first effect that `when` picks. */
export function once(when: When, act: (run: PureRun) => void): NonNullable<Script["at"]> {
  let done = false;
  return (effect, driven) => {
    if (done || !when(effect, driven)) return;
    done = true;
    act(driven);
  };
}

/** The loop waits and such an op is under way. */
export function waitingFor(kind: Op["kind"]): When {
  return (effect, driven) => effect.kind === "wait" && driven.open.some((op) => op.kind === kind);
}

export function starting(kind: Op["kind"]): When {
  return (effect) => effect.kind === "start" && effect.op.kind === kind;
}
