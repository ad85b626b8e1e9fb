import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Check } from "../../src/cli/doctor/check.js";
import { serverStatus, startServer, stopServer } from "../../src/server/index.js";
import { runCliProcess, startCliInTest, userEnvironment } from "../support/cli-process.js";
import { eventStream, startProtocolServer } from "../support/protocol-server.js";
import { eventually } from "../support/until.js";
import { openaiWire } from "../support/protocol-wires.js";

let home: string;
let env: Record<string, string>;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "longhaul-doctor-"));
  env = userEnvironment({ LONGHAUL_HOME: home, LONGHAUL_HOST_ID: "ward" });
});
afterAll(async () => {
  await stopServer({ home, force: true });
  rmSync(home, { recursive: true, force: true });
});

async function doctor(more: Record<string, string> = {}, ...flags: string[]) {
  const result = await runCliProcess(["doctor", "--json", ...flags], { env: { ...env, ...more } });
  const { ok, checks } = JSON.parse(result.stdout) as { ok: boolean; checks: Check[] };
  expect(result).toMatchObject({ code: ok ? 0 : 1, stderr: "" });
  for (const { status, cure } of checks) expect(cure === undefined).toBe(status === "ok");
  const named = (name: string) => checks.find((check) => check.name === name);
  return { ok, checks, named };
}

test("without a server it starts none, says what would start, and does not fail; a server named but absent does", async () => {
  const idle = await doctor();
  expect(idle.ok).toBe(true);
  expect(idle.named("Temporal server")).toMatchObject({
    status: "warn",
    found: expect.stringMatching(/^not running; CLI [\d.]+ is at /),
    cure: expect.stringContaining("longhaul server start"),
  });
  expect(idle.named("Clock")?.found).toContain("no server");
  expect(idle.named("Store")?.status).toBe("ok");
  expect(readdirSync(join(home, "store"))).toEqual([]);
  expect(await serverStatus({ home })).toMatchObject({ running: false, died: false });

  const lost = await doctor({ TEMPORAL_ADDRESS: "127.0.0.1:1" });
  expect(lost.ok).toBe(false);
  expect(lost.named("Temporal server")).toMatchObject({
    status: "fail",
    found: expect.stringContaining("127.0.0.1:1"),
    cure: expect.stringContaining("TEMPORAL_ADDRESS"),
  });
});

test("with a server it tells its version, what is registered, who polls and the clock, and leaves no workflow; --model makes one call", async () => {
  const { address = "" } = await startServer({ home, env });
  const bare = await doctor();
  expect(bare.named("Temporal server")).toMatchObject({
    status: "ok",
    found: expect.stringMatching(new RegExp(`^server \\d+\\.\\d+\\S* at ${address},.*CLI \\d`)),
  });
  expect(bare.named("Search attributes")?.found).toContain("LonghaulState");
  expect(bare.named("Search attributes")?.status).toBe("warn");
  expect(bare.named("Session worker")?.found).toContain("nobody polls longhaul");
  expect(bare.named("Host worker")?.found).toContain("longhaul.host.ward.control");
  expect(bare.named("Clock")).toMatchObject({ status: "ok", found: expect.stringContaining("±") });

  const worker = startCliInTest(["worker"], { env });
  await worker.shows("worker ready");
  const provider = await startProtocolServer(eventStream(openaiWire.events({ text: "OK" })));
  try {
    const model = {
      LONGHAUL_MODEL: "openai-compatible/small",
      LONGHAUL_BASE_URL: `${provider.url}/v1`,
      LONGHAUL_API_KEY: "k-1b7a",
    };
    const well = await doctor(model, "--model");
    expect(well.checks.filter((check) => check.status !== "ok")).toEqual([]);
    expect(well.named("Session worker")?.found).toContain(`${worker.pid}@`);
    expect(well.named("Host worker")?.found).toContain("longhaul.host.ward ");
    expect(well.named("Model call")?.found).toMatch(/answered: first token after \d+ ms/);
    expect(provider.requests.map(({ body }) => body)).toMatchObject([
      { model: "small", max_tokens: 16 },
    ]);
    expect(JSON.stringify(well.checks)).not.toContain("k-1b7a");
  } finally {
    await provider.close();
  }

  const connection = await Connection.connect({ address });
  try {
    const client = new Client({ connection });
    await eventually(async () => {
      const left: string[] = [];
      for await (const one of client.workflow.list()) left.push(one.workflowId);
      expect(left).toEqual([]);
    });
  } finally {
    await connection.close();
  }
});
