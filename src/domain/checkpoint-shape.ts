import { todoStatuses } from "../contracts/todo.js";
import { jobStatuses } from "../contracts/jobs.js";
import { seenWindow } from "./inbox.js";
import { maxUnreadRecords } from "./jobs.js";
import {
  either,
  flag,
  count,
  json,
  list,
  object,
  oneOf,
  open,
  position,
  table,
  text,
  tuple,
  type Shape,
} from "./shape.js";

/** Shapes of a checkpoint's parts (design D8). Strict: a key that is not known is damage, for the version says what is there. */

const hex: Shape = (value) =>
  typeof value === "string" && /^(?:[0-9a-f]{64})?$/u.test(value) ? undefined : " must be a digest";
const message = open({
  id: text,
  role: oneOf("user"),
  content: list(open({ type: text })),
  source: open({ kind: text }),
});

const measure = tuple(count, count, oneOf(0, 1), oneOf(0, 1));

export const logShape = object(
  {
    seq: count,
    turnOpen: flag,
    surface: object({
      hidden: object({ seqs: text, digest: hex }),
      stubs: list(tuple(count, hex)),
    }),
    carried: list(open({ type: text, seq: count, time: json, data: open({}) })),
    meter: object(
      {
        hidden: object({ length: count, tokens: count, settled: flag }),
        nodes: list(measure),
        pending: list(text),
        seq: position,
        headerSeq: position,
      },
      { anchor: object({ seq: count, headerSeq: position, tokens: count }) },
    ),
    recall: object(
      { turnZones: list(text) },
      {
        runtimeContext: object({ text, seq: count }),
        readingAt: json,
        shownAt: json,
        userZone: text,
      },
    ),
  },
  { segment: text },
);

export const inboxShape = object({
  nextTurn: list(message),
  nextStep: list(message),
  wake: flag,
  // Ids of messages that wait are kept beyond the window.
  seen: list(either(object({ id: text, key: text, seq: count }), tuple(text, text, count))),
  wakes: object({ spent: count, owed: list(text) }),
});

const offsets = table(count);
const place = either(
  object({ at: oneOf("nowhere") }),
  object({ at: oneOf("here"), text, seq: count }),
  object({ at: oneOf("entry"), seq: count }),
  object({ at: oneOf("store"), ref: object({ ref: text, bytes: count, digest: text }) }),
  object(
    { at: oneOf("streams") },
    { tails: list(object({ stream: text, from: count, to: count, text })) },
  ),
);

const owner = object({ session: text, token: text });
const job = object(
  {
    id: text,
    kind: text,
    label: text,
    form: oneOf("stream", "final"),
    nonce: text,
    status: oneOf(...jobStatuses),
    reported: flag,
    startedAt: count,
    offsets,
  },
  {
    limit: count,
    owner: either(owner, count),
    opId: text,
    detail: text,
    stoppingSince: count,
    finishedAt: count,
    lost: oneOf(true),
    output: place,
  },
);

export const jobsShape = object(
  {
    counters: table(count),
    jobs: list(job, maxUnreadRecords + seenWindow),
    heard: list(tuple(text, count)),
  },
  // Absent where each job holds its own.
  { owners: list(owner) },
);

const verdict = either(
  object({ ok: oneOf(true), text, seq: count }),
  object({ ok: oneOf(false), code: text, message: text }),
);

export const todoShape = object({
  todos: either(oneOf(null), list(object({ content: text, status: oneOf(...todoStatuses) }))),
  recentOps: list(object({ opId: text, result: verdict })),
});

const refusal = object({ ok: oneOf(false), code: text, message: text });
const request = open({ provider: text, model: text });
const route = object({ provider: text, model: text }, { contextWindow: count });
const tool = open({
  name: text,
  description: text,
  parameters: open({}),
  where: text,
  parallel: flag,
  idempotent: flag,
});

export const stateShape = object(
  {
    turn: object(
      { number: count, open: flag, step: count, stepOpen: flag, cut: flag },
      {
        aborting: oneOf("user", "parent", "hook", "disposed"),
        lastEnd: object({ turn: count, reason: open({ kind: text }) }),
      },
    ),
    place: object(
      {
        epoch: count,
        live: flag,
        suspended: flag,
        cold: flag,
        tools: list(tool),
        jobKinds: list(
          object({ kind: text, output: oneOf("stream", "final") }, { outputLimitBytes: count }),
        ),
        ready: flag,
      },
      { host: text },
    ),
    config: open({ request }),
    closed: flag,
    refreshTools: flag,
    routes: list(open({ provider: text, model: text })),
  },
  {
    sessionHeader: open({ version: oneOf(0), id: text, createdAt: count }),
    header: object({ seq: count, header: open({ config: request }) }),
    context: route,
    compaction: object(
      {},
      {
        open: object({ id: text, turn: either(oneOf(null), count) }, { aborting: oneOf(true) }),
        failedIn: count,
        asked: object({ opId: text, seq: count }),
      },
    ),
    fault: refusal,
    closing: object({}, { reason: text }),
  },
);
