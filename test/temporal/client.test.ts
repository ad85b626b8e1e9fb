import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import {
  LonghaulClient,
  defaultLimits,
  type LonghaulClientOptions,
  type SessionConfig,
  type WatchEvent,
} from "../../src/client/index.js";
import type { Store } from "../../src/contracts/store.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { startWorker, type RunningWorker } from "../../src/worker/index.js";
import { takeSharedQueue } from "../support/shared-queue.js";

const connection = { address: inject("temporalAddress") };
const scenario = `name: client
turns:
  - repeat: 1000
    steps:
      - reasoning: "thinking about turn \${turn}"
        text: "This is the answer of turn \${turn}, long enough to come in pieces."
        chunk: 8
        delayMs: 40
`;

let home: string;
let store: Store;
let worker: RunningWorker | undefined;
let config: SessionConfig;
let run = 0;
let release: (() => Promise<void>) | undefined;

beforeAll(async () => {
  release = await takeSharedQueue();
  home = await mkdtemp(join(tmpdir(), "longhaul-client-"));
  store = await openDirectoryStore(join(home, "store"));
  const model = join(home, "scenario.yaml");
  await writeFile(model, scenario);
  config = {
    request: { provider: "scripted", model },
    allowParallelInProgress: false,
    worldTools: false,
    outsideWorkspace: false,
    deny: [],
    ask: [],
    limits: defaultLimits,
  };
}, 300_000);

afterEach(stop);

afterAll(async () => {
  await release?.();
  await rm(home, { recursive: true });
});

async function start(): Promise<void> {
  worker = await startWorker({
    connection,
    home,
    store,
    hostId: "client-test",
    roles: ["session"],
    workflowBundlePath: inject("workflowBundlePath"),
    maxCachedWorkflows: Number(process.env["LONGHAUL_TEST_CACHE"]),
  });
}

async function stop(): Promise<void> {
  const stopping = worker;
  worker = undefined;
  await stopping?.stop();
}

const connect = (options: Partial<LonghaulClientOptions> = {}) =>
  LonghaulClient.connect({ connection, store, ...options });
const freshName = () => `client-${process.pid}-${run++}-${Date.now()}`;

/** Entries watched so far, and the text since the last restart that came before each assistant message. */
function shownTexts(events: readonly WatchEvent[]): string[] {
  const texts: string[] = [];
  let text = "";
  for (const event of events) {
    if (event.type === "restart") text = "";
    else if (event.type === "delta" && event.kind === "text") text += event.text;
    else if (event.type === "entry" && event.entry.type === "assistant/message") {
      texts.push(text);
      text = "";
    }
  }
  return texts;
}

const seqsOf = (events: readonly WatchEvent[]) =>
  events.flatMap((event) => (event.type === "entry" ? [event.entry.seq] : []));
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

describe("a client", () => {
  test("says within seconds that nobody answers at an address, and that a namespace does not exist", async () => {
    const nowhere = LonghaulClient.connect({
      connection: { address: "127.0.0.1:1", connectTimeout: 500 },
    });
    await expect(nowhere).rejects.toMatchObject({
      code: "TEMPORAL_UNREACHABLE",
      message: expect.not.stringContaining("\n"),
    });
    await expect(connect({ namespace: "not-there" })).rejects.toMatchObject({
      code: "NAMESPACE_NOT_FOUND",
    });
  });

  test("without a worker says NO_WORKER, and a repeat under the same id is put in the inbox once", async () => {
    await using client = await connect({ callTimeoutMs: 1500 });
    const id = freshName();
    await expect(client.createSession({ id, config })).rejects.toMatchObject({ code: "NO_WORKER" });
    const session = client.session(id);
    const [first, second] = await Promise.allSettled([
      session.send("hello", { id: "m1" }),
      session.send("more", { id: "m2" }),
    ]);
    expect(first).toMatchObject({
      status: "rejected",
      reason: { code: "NO_WORKER", message: expect.stringContaining("same id (m1) is safe") },
    });
    expect(second).toMatchObject({
      status: "rejected",
      reason: { code: "NO_WORKER", message: expect.stringContaining("nothing was changed") },
    });
    await start();
    await using patient = await connect();
    const again = patient.session(id);
    const sent = await again.send("hello", { id: "m1" });
    await expect(again.send("hello", { id: "m1" })).resolves.toEqual(sent);
    await expect(again.send("other", { id: "m1" })).rejects.toMatchObject({ code: "DUPLICATE_ID" });
    await again.waitIdle({ after: sent.seq });
    const messages = await again.messages();
    expect(messages.map(({ id: messageId, role }) => `${role} ${messageId}`)).toEqual([
      "user m1",
      expect.stringMatching(/^assistant /u),
    ]);
    await expect(again.outcome({ after: sent.seq })).resolves.toMatchObject({
      kind: "completed",
      turn: 1,
      canceledUnrun: false,
    });
    await again.close();
  });

  test("[harness/E11] watches a session through the loss of its worker without a gap, a repeat or torn text", async () => {
    await start();
    await using client = await connect();
    const session = await client.createSession({ id: freshName(), config });
    const events: WatchEvent[] = [];
    const watching = (async () => {
      for await (const event of session.watch()) events.push(event);
    })();
    await session.followup("one");
    await session.followup("two");
    await expect
      .poll(() => events.some((event) => event.type === "delta" && event.turn === 2), {
        timeout: 60_000,
      })
      .toBe(true);
    await stop();
    await expect
      .poll(() => events.findLast((event) => event.type === "connection"), { timeout: 60_000 })
      .toMatchObject({ up: false });
    await start();
    await session.waitIdle();
    const joined: WatchEvent[] = [];
    const later = (async () => {
      for await (const event of session.watch()) joined.push(event);
    })();
    await session.close({ reason: "done" });
    await Promise.all([watching, later]);
    const { entries, lastSeq } = await session.logPage();
    expect(seqsOf(events)).toEqual(numbers(lastSeq + 1));
    expect(seqsOf(joined)).toEqual(numbers(lastSeq + 1));
    const texts = entries.flatMap((entry) =>
      entry.type === "assistant/message"
        ? [
            entry.data.message.content
              .map((block) => (block.type === "text" ? block.text : ""))
              .join(""),
          ]
        : [],
    );
    expect(texts).toHaveLength(2);
    expect(shownTexts(events)).toEqual(texts);
    expect(shownTexts(joined)).toEqual(texts);
    const ups = events.flatMap((event) => (event.type === "connection" ? [event.up] : []));
    expect(ups.length).toBeGreaterThanOrEqual(2);
    // Each loss is told once and taken back once; a worker that is slow, or a query that was dropped, is one more.
    expect(ups).toEqual(ups.map((_, index) => index % 2 === 1));
    expect(ups.at(-1)).toBe(true);
    await expect(session.view()).resolves.toMatchObject({ state: "closed", lastSeq });
  });

  test("tells sessions that never were from those that are closed, and keeps ids unique", async () => {
    await start();
    await using client = await connect();
    const id = freshName();
    await expect(client.session(id).send("x")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(client.session(id).view()).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(client.session(id).watch().next()).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
    const session = await client.createSession({ id, config });
    await expect(client.createSession({ id, config })).rejects.toMatchObject({
      code: "SESSION_EXISTS",
    });
    await session.close();
    await session.close();
    await expect(session.send("x")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    await expect(client.createSession({ id, config })).rejects.toMatchObject({
      code: "SESSION_EXISTS",
    });
  });

  test("refuses at its edge what no session could take", async () => {
    await using client = await connect();
    expect(() => client.session("a b")).toThrow("expected 1-200 characters");
    await expect(client.createSession({ id: "", config })).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
    const session = client.session("not-asked");
    await expect(session.send(" \n")).rejects.toMatchObject({ code: "INVALID_INPUT" });
    await expect(session.send("é".repeat(131_073))).rejects.toMatchObject({
      code: "MESSAGE_TOO_LARGE",
    });
    await expect(session.configure({})).rejects.toMatchObject({ code: "INVALID_INPUT" });
    await expect(client.list({ query: "Nonsense(" })).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
  });

  test("lists sessions by state, and also where no attribute is registered", async () => {
    await start();
    await using client = await connect();
    await using plain = await connect({ attributes: [] });
    const parent = freshName();
    const open = await client.createSession({
      id: freshName(),
      config,
      title: "An open one",
      parentSession: parent,
    });
    const bare = await plain.createSession({
      id: freshName(),
      config,
      title: "A bare one",
      parentSession: parent,
    });
    const done = await plain.createSession({ id: freshName(), config });
    await done.close();
    const find = async (
      by: LonghaulClient,
      id: string,
      state?: "idle" | "closed" | "unknown" | "running",
    ) => (await by.list(state === undefined ? {} : { state })).find((row) => row.id === id);
    await expect
      .poll(() => find(client, open.id, "idle"))
      .toMatchObject({ title: "An open one", state: "idle", parent });
    await expect
      .poll(() => find(client, bare.id))
      .toMatchObject({ title: "A bare one", state: "unknown", parent });
    await expect.poll(() => find(plain, bare.id, "unknown")).toBeDefined();
    await expect
      .poll(() => find(plain, done.id, "closed"))
      .toMatchObject({ state: "closed", closedAt: expect.any(Number) });
    expect(await find(client, open.id, "running")).toBeUndefined();
    expect(await client.list({ query: `WorkflowId = '${open.id}'`, limit: 1 })).toMatchObject([
      { id: open.id },
    ]);
    await Promise.all([open.close(), bare.close()]);
  });

  test("ends what waits when it is closed", async () => {
    await start();
    const client = await connect();
    const session = await client.createSession({ id: freshName(), config });
    const waiting = session.waitIdle({ after: 1_000_000 });
    const watch = session.watch();
    await watch.next();
    await client.close();
    await expect(waiting).rejects.toMatchObject({ code: "ABORTED" });
    const rest: WatchEvent[] = [];
    for await (const event of watch) rest.push(event);
    expect(rest.every((event) => event.type !== "connection")).toBe(true);
    await using other = await connect();
    await other.session(session.id).close();
  });

  test("interrupts a turn and keeps what waits, and cancels what waits", async () => {
    await start();
    await using client = await connect();
    // A turn of a minute: it is still open when it is looked at, and the interrupt ends it.
    const model = join(home, "slow.yaml");
    await writeFile(model, scenario.replace("delayMs: 40", "delayMs: 4000"));
    const slow = { ...config, request: { provider: "scripted", model } };
    const session = await client.createSession({ id: freshName(), config: slow });
    const first = await session.followup("one");
    await session.followup("two", { id: "queued" });
    await expect.poll(async () => (await session.view()).turn.open, { timeout: 60_000 }).toBe(true);
    await expect(session.interrupt()).resolves.toMatchObject({ result: "requested", removed: 0 });
    const view = await session.waitIdle({ after: first.seq });
    expect(view).toMatchObject({ lastEnd: { kind: "aborted" }, inbox: { nextTurn: ["queued"] } });
    await expect(session.cancel()).resolves.toMatchObject({ result: "idle", removed: 1 });
    await expect(session.outcome()).resolves.toMatchObject({
      kind: "aborted",
      canceledUnrun: true,
    });
    await session.close();
  });
});
