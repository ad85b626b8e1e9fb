import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { describe, expect, onTestFinished } from "vitest";
import type { SessionClient } from "../../src/client/session-client.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { providersFromEnv, type ProvidersSettings } from "../../src/models/providers.js";
import {
  eventStream,
  startProtocolServer,
  status,
  type Answer,
  type ProtocolServer,
  type ReceivedRequest,
} from "../support/protocol-server.js";
import {
  anthropicWire,
  deepseekWire,
  envOf,
  key,
  openaiWire,
  wires,
  type Wire,
} from "../support/protocol-wires.js";
import { compiledScript } from "../support/compiled-script.js";
import type { ProviderWorkerOptions } from "../support/provider-worker.js";
import { test, type Lab, type Place, type SessionOptions } from "../support/temporal.js";
import { eventually, untilStreaming } from "../support/until.js";
import { readCompletions, readMessages, readWitnessed } from "../support/wire-reading.js";
import { witnessRequests } from "../support/witness.js";

const plain = { worldTools: false };

async function serve(...answers: Answer[]): Promise<ProtocolServer> {
  const server = await startProtocolServer(...answers);
  onTestFinished(() => server.close());
  return server;
}

function placeOf(
  lab: Lab,
  env: Record<string, string>,
  settings: ProvidersSettings = {},
): Promise<Place> {
  return lab.place({ models: providersFromEnv(env, settings) });
}

function sessionOn(
  lab: Lab,
  at: Place,
  { provider, model }: Pick<Wire, "provider" | "model">,
  { config, ...options }: SessionOptions = {},
): Promise<SessionClient> {
  return lab.session(
    { turns: [] },
    { ...options, at, config: { ...plain, ...config, request: { provider, model } } },
  );
}

/** Every request the servers got, in order, is the one the log tells of. */
async function compareWithLog(
  lab: Lab,
  session: SessionClient,
  received: readonly ReceivedRequest[],
): Promise<void> {
  const log = JSON.parse(JSON.stringify(await lab.entries(session))) as unknown[];
  const witnessed = witnessRequests(log);
  const expected = witnessed.map((request) => {
    const { provider } = request.config as { readonly provider: string };
    return readWitnessed(request, provider === "anthropic" ? objectArguments : textArguments);
  });
  const read = received.map(({ path, body }) =>
    path.endsWith("/messages") ? readMessages(body) : readCompletions(body),
  );
  expect(read).toEqual(expected);
}

function textArguments(raw: string): string {
  try {
    JSON.parse(raw);
    return raw;
  } catch {
    return JSON.stringify(raw);
  }
}

function objectArguments(raw: string): string {
  try {
    return JSON.stringify(JSON.parse(raw));
  } catch {
    return JSON.stringify({ unparsed_arguments: raw });
  }
}

const count = (log: readonly LogEntry[], type: LogEntry["type"]): number =>
  log.filter((entry) => entry.type === type).length;

describe.each(wires)("a session on $provider", (wire) => {
  test("[harness/H10] [harness/A12] sends, request by request, what its log says: retries, cut streams, tools, broken arguments, changed prompts", async ({
    lab,
  }) => {
    const todos = '{"todos" : [{"content":"look 日本語","status":"in_progress"}]}';
    const server = await serve(
      status(500, wire.error("api_error", "overloaded"), { "retry-after": "0" }),
      eventStream(wire.events({ text: "half an ans", finish: null }), { ending: "cut" }),
      eventStream(
        wire.events({
          reasoning: "Both at once.",
          text: "I look.",
          calls: [
            { callId: "c-1", name: "todo_write", arguments: todos },
            { callId: "c-2", name: "todo_write", arguments: '{"todos": [' },
            {
              callId: "c-3",
              name: "bash",
              arguments: '{"command":"echo one","description":"say one"}',
            },
          ],
        }),
        { chunk: 30 },
      ),
      eventStream(wire.events({ reasoning: "Done now.", text: "It is done." })),
      eventStream(wire.events({ text: "Again." })),
    );
    const place = await placeOf(lab, envOf(wire, server.url));
    const session = await sessionOn(lab, place, wire, {
      config: { worldTools: true, system: "Be brief." },
      limits: { retryBaseMs: 1 },
    });
    const first = await lab.play(session);
    expect([
      count(first, "turn/start"),
      count(first, "step/start"),
      count(first, "llm/retry"),
    ]).toEqual([1, 2, 2]);
    expect(
      first.flatMap((entry) => (entry.type === "llm/retry" ? [entry.data.failure.code] : [])),
    ).toEqual(["SERVER", "TRANSPORT"]);
    const codes = first.flatMap((entry) =>
      entry.type === "tool/result" ? [entry.data.error?.code] : [],
    );
    expect(codes).toEqual([undefined, "INVALID_ARGS", undefined]);
    const raw = first.flatMap((entry) =>
      entry.type === "tool/call" ? [entry.data.arguments] : [],
    );
    expect(raw.slice(0, 2)).toEqual([todos, '{"todos": [']);
    await session.inject("By the way: it rains.");
    await session.configure({ config: { system: "Be briefer." } });
    expect((await lab.play(session, "And now?")).at(-1)).toMatchObject({
      type: "turn/end",
      data: { turn: 2, reason: { kind: "completed" } },
    });
    expect(server.requests).toHaveLength(5);
    await compareWithLog(lab, session, server.requests);
  });

  test("[harness/A8] an interrupt cuts the HTTP request and keeps the text that had come", async ({
    lab,
  }) => {
    const server = await serve(
      eventStream(wire.events({ text: "It is half", finish: null }), { ending: "stall" }),
    );
    const place = await placeOf(lab, envOf(wire, server.url));
    const session = await sessionOn(lab, place, wire);
    await session.followup("go");
    await untilStreaming(session);
    await session.interrupt();
    await eventually(() => expect(server.requests[0]?.closed()).toBe(true));
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(log.find((entry) => entry.type === "assistant/message")?.data).toMatchObject({
      interrupted: true,
    });
    expect(log.at(-1)).toMatchObject({
      type: "turn/end",
      data: { reason: { kind: "aborted", reason: "user" } },
    });
  });

  test("[harness/A13] an interrupt while it waits as long as Retry-After says ends the turn without a second request", async ({
    lab,
  }) => {
    const server = await serve(
      status(429, wire.error("rate_limit_error", "slow down"), { "retry-after": "3600" }),
    );
    const place = await placeOf(lab, envOf(wire, server.url));
    const session = await sessionOn(lab, place, wire, { limits: { retryCapMs: 4_000_000 } });
    await session.followup("go");
    await eventually(async () =>
      expect((await lab.entries(session)).at(-1)).toMatchObject({
        type: "llm/retry",
        data: { delayMs: 3_600_000 },
      }),
    );
    await session.interrupt();
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(log.at(-1)).toMatchObject({ type: "turn/end", data: { reason: { kind: "aborted" } } });
    expect(server.requests).toHaveLength(1);
  });

  test("[harness/A11] a reply cut at its token limit loses its calls and marks the turn, also after a good step", async ({
    lab,
  }) => {
    const calls = [{ callId: "c-1", name: "todo_write", arguments: '{"todos":[]}' }];
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const cut = wire.events({
      text: "cut off in the middle",
      calls,
      finish: wire.words.length,
      delta: 50,
    });
    const half = cut.findIndex((event) => event.includes("cut off")) + 1;
    const server = await serve(
      async (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(cut.slice(0, half).join(""));
        await released;
        response.end(cut.slice(half).join(""));
      },
      eventStream(wire.events({ text: "good" })),
    );
    const place = await placeOf(lab, envOf(wire, server.url));
    const session = await sessionOn(lab, place, wire);
    await session.followup("go");
    await untilStreaming(session);
    await session.inject("makes a second step");
    release();
    await session.waitIdle();
    const log = await lab.entries(session);
    expect([count(log, "step/start"), count(log, "tool/call")]).toEqual([2, 0]);
    expect(log.at(-1)).toMatchObject({
      type: "turn/end",
      data: { reason: { kind: "max-tokens" } },
    });
    await compareWithLog(lab, session, server.requests);
  });
});

test("[harness/H2] [harness/H7] [harness/H11] a switch of provider is one header change; efforts and limits are the new one's, its capacity is logged, and old reasoning stays behind", async ({
  lab,
}) => {
  const said = (wire: Wire) =>
    eventStream(wire.events({ reasoning: `Thought by ${wire.provider}.`, text: "ok" }));
  const servers = await Promise.all(wires.map((wire) => serve(said(wire))));
  const env = Object.assign(
    {},
    ...wires.map((wire, index) => envOf(wire, servers[index]?.url ?? "")),
  ) as Record<string, string>;
  const place = await placeOf(lab, env, {
    models: {
      "deepseek/deepseek-v4-pro": { reasoningEffort: "high", maxTokens: 500, contextWindow: 1_000 },
      "anthropic/claude-opus-4-6": { reasoningEffort: "low", maxTokens: 700 },
    },
  });
  const session = await sessionOn(lab, place, deepseekWire);
  const turn = async ({ provider, model }: Wire): Promise<void> => {
    await session.configure({ config: { request: { provider, model } } });
    await lab.play(session);
    await lab.play(session);
  };
  for (const wire of [deepseekWire, anthropicWire, openaiWire, deepseekWire]) await turn(wire);
  const log = await lab.entries(session);
  const headers = log.flatMap((entry) => (entry.type === "request/header" ? [entry.data] : []));
  expect(
    headers.map(({ reason, header: { config, adapterDefaults } }) => [
      reason,
      config,
      adapterDefaults,
    ]),
  ).toEqual([
    [
      "initial",
      { provider: "deepseek", model: "deepseek-v4-pro", reasoningEffort: "high", maxTokens: 500 },
      { reasoningEffort: true, maxTokens: true },
    ],
    [
      "change",
      { provider: "anthropic", model: "claude-opus-4-6", reasoningEffort: "low", maxTokens: 700 },
      { reasoningEffort: true, maxTokens: true },
    ],
    ["change", { provider: "openai-compatible", model: "any-model" }, undefined],
    [
      "change",
      { provider: "deepseek", model: "deepseek-v4-pro", reasoningEffort: "high", maxTokens: 500 },
      { reasoningEffort: true, maxTokens: true },
    ],
  ]);
  expect(log.flatMap((entry) => (entry.type === "request/context" ? [entry.data] : []))).toEqual([
    { provider: "deepseek", model: "deepseek-v4-pro", contextWindow: 1_000 },
    { provider: "anthropic", model: "claude-opus-4-6", contextWindow: 1_000_000 },
    { provider: "openai-compatible", model: "any-model" },
    { provider: "deepseek", model: "deepseek-v4-pro", contextWindow: 1_000 },
  ]);
  const [openai, deepseek, anthropic] = servers.map((server) => server.requests);
  const [d1, d2, d3, d4] = deepseek ?? [];
  const inOrder = [d1, d2, ...(anthropic ?? []), ...(openai ?? []), d3, d4].flatMap((request) =>
    request === undefined ? [] : [request],
  );
  expect(inOrder).toHaveLength(8);
  await compareWithLog(lab, session, inOrder);
});

test("a key is in the request alone: not in history, log, store, output or errors, and no command sees it", async ({
  lab,
}) => {
  const wire = deepseekWire;
  const server = await serve(
    eventStream(
      wire.events({
        calls: [
          {
            callId: "c-1",
            name: "bash",
            arguments: '{"command":"env; echo seen","description":"look"}',
          },
        ],
      }),
    ),
    eventStream(wire.events({ reasoning: "Hm.", text: "Nothing there." })),
    status(401, wire.error("authentication_error", `Incorrect API key provided: ${key}`)),
    eventStream([wire.errorEvent("authentication_error", `Bearer ${key} is not valid`)]),
  );
  const place = await lab.emptyPlace();
  const output = await startProviderWorker(lab, place, {
    ...envOf(wire, server.url),
    NOTE: "kept",
  });
  const session = await sessionOn(lab, place, wire, { config: { worldTools: true } });
  const messages: string[] = [];
  for (const text of ["look", "again", "and again"]) {
    const end = (await lab.play(session, text)).at(-1);
    if (end?.type === "turn/end" && end.data.reason.kind === "error")
      messages.push(end.data.reason.message);
  }
  expect(messages).toEqual([
    expect.stringContaining("refused the key in DEEPSEEK_API_KEY (401)"),
    expect.stringContaining("refused the key in DEEPSEEK_API_KEY"),
  ]);
  const log = JSON.stringify(await lab.entries(session));
  expect(log).toContain("NOTE=kept");
  await output.stop();
  expect(server.requests.every(({ headers }) => headers.authorization === `Bearer ${key}`)).toBe(
    true,
  );
  const history = historyToJSON(await lab.history(session.id));
  // Payloads stand in a history as base64.
  const payloads = [...history.matchAll(/"data":\s*"(?<data>[A-Za-z0-9+/=]+)/g)].map(({ groups }) =>
    Buffer.from(groups?.["data"] ?? "", "base64").toString("utf8"),
  );
  expect(payloads.some((text) => text.includes("Nothing there."))).toBe(true);
  const files = await filesBelow(output.storeDirectory, place.home);
  expect(files.some(({ text }) => text.includes("Nothing"))).toBe(true);
  const places = {
    log,
    history,
    output: output.text(),
    payloads: payloads.join("\n"),
    requests: server.requests.map(({ text }) => text).join("\n"),
  };
  for (const [name, text] of [
    ...Object.entries(places),
    ...files.map(({ path, text: content }) => [path, content] as const),
  ])
    expect(text.includes(key), `the key in ${name}`).toBe(false);
});

interface WorkerProcess {
  readonly storeDirectory: string;
  readonly text: () => string;
  readonly stop: () => Promise<void>;
}

/** A worker process of its own, whose environment alone holds the key. */
async function startProviderWorker(
  lab: Lab,
  place: Place,
  env: Record<string, string>,
): Promise<WorkerProcess> {
  const storeDirectory = join(place.home, "..", "store");
  const options: ProviderWorkerOptions = {
    connection: { address: lab.address },
    home: place.home,
    hostId: place.hostId,
    sessionQueue: place.queue,
    workflowBundlePath: lab.bundlePath,
    shutdownGraceMs: 200,
    storeDirectory,
  };
  const script = compiledScript(new URL("../support/provider-worker.ts", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(options)], {
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  await eventually(() => expect(text).toContain("ready"));
  return {
    storeDirectory,
    text: () => text,
    async stop() {
      const closed = once(child, "close");
      child.stdin.end();
      await closed;
    },
  };
}

async function filesBelow(
  ...roots: readonly string[]
): Promise<{ readonly path: string; readonly text: string }[]> {
  const found = await Promise.all(
    roots.map(async (root) => {
      const entries = await readdir(root, { recursive: true, withFileTypes: true });
      return Promise.all(
        entries
          .filter((entry) => entry.isFile())
          .map(async (entry) => {
            const path = join(entry.parentPath, entry.name);
            return { path, text: (await readFile(path)).toString("utf8") };
          }),
      );
    }),
  );
  return found.flat();
}
