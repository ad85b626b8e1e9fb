import { PassThrough } from "node:stream";
import { describe, expect, it, vi } from "vitest";

import { commandEnvironment } from "../../src/process/environment.js";
import { captureOutput, tailLimit } from "../../src/process/output-tail.js";
import { decodeText, headBytes, tailBytes } from "../../src/process/utf8.js";
import { openBench } from "./process-fixtures.js";

describe("captured output", () => {
  it("is in memory only up to the tail limit, and in the store from the next byte on", async () => {
    const bench = await openBench();
    for (const [extra, stored] of [
      [0, undefined],
      [1, tailLimit + 1],
    ] as const) {
      const stream = `spill/${extra}`;
      const source = new PassThrough();
      const capture = captureOutput(source, { store: bench.store, session: "s", stream });
      source.write(Buffer.alloc(tailLimit, "a"));
      source.end(Buffer.alloc(extra, "b"));
      await capture.ended;
      const output = await capture.finish();
      expect(output.total).toBe(tailLimit + extra);
      expect(output.tail.length).toBe(tailLimit);
      expect(await bench.store.size("s", stream)).toBe(stored);
      expect(output.locator).toBe(
        stored === undefined ? undefined : bench.store.locator("s", stream),
      );
    }
  });

  it("keeps every byte in order however the chunks fall and however slow the store is", async () => {
    const bench = await openBench();
    const slow = {
      ...forward(bench.store),
      append: async (...args: Parameters<typeof bench.store.append>) => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return await bench.store.append(...args);
      },
    };
    const source = new PassThrough();
    const capture = captureOutput(source, { store: slow, session: "s", stream: "spill/x" });
    const parts: Buffer[] = [];
    for (let index = 0; index < 400; index += 1) {
      const part = Buffer.from(`${index}:${"あ".repeat(index)}\n`);
      parts.push(part);
      if (!source.write(part)) await new Promise((resolve) => source.once("drain", resolve));
    }
    source.end();
    await capture.ended;
    const output = await capture.finish();
    const all = Buffer.concat(parts);
    expect(Buffer.from(await bench.store.read("s", "spill/x", 0, all.length + 1)).equals(all)).toBe(
      true,
    );
    expect(output.stored).toBe(all.length);
    expect(all.subarray(-output.tail.length).equals(output.tail)).toBe(true);
    expect(output.tail.toString()).not.toContain("\uFFFD");
  });

  it("is cut at code points", () => {
    const bytes = Buffer.from("aあ😀z");
    for (let limit = 0; limit <= bytes.length; limit += 1) {
      for (const cut of [headBytes(bytes, limit), tailBytes(bytes, limit)]) {
        expect(cut.length).toBeLessThanOrEqual(limit);
        expect(cut.length).toBeGreaterThan(limit - 4);
        expect(cut.toString()).not.toContain("\uFFFD");
      }
    }
    expect(decodeText(Buffer.from([0x61, 0, 0xff]))).toBe("a\uFFFD\uFFFD");
  });
});

describe("the environment of a command", () => {
  const marks = { home: "/h", sessionId: "s\n1", claim: "1.1.c" };

  it("has fresh facts without control characters and no credentials", () => {
    const dropped = [
      "API_KEY",
      "apikey",
      "MY_TOKEN",
      "CLIENT_SECRET",
      "PGPASSWORD",
      "DB_PASSWD",
      "DB_PASS",
      "MYSQL_PWD",
      "GPG_PASSPHRASE",
      "GOOGLE_APPLICATION_CREDENTIALS",
      "BASIC_AUTH",
      "AUTHORIZATION",
      "SESSION_COOKIE",
      "PRIVATE_THING",
      "AWS_PROFILE",
      "ANTHROPIC_BASE_URL",
      "OPENAI_ORG",
      "DEEPSEEK_X",
      "TEMPORAL_ADDRESS",
      "LONGHAUL_ANYTHING",
      "OLDPWD",
    ];
    const kept = [
      "PATH",
      "HOME",
      "PWD",
      "LANG",
      "GIT_AUTHOR_NAME",
      "EDITOR",
      "COMPASS",
      "http_proxy",
    ];
    const base = Object.fromEntries([...dropped, ...kept].map((name) => [name, "v"]));
    expect(commandEnvironment(base, marks)).toEqual({
      ...Object.fromEntries(kept.map((name) => [name, "v"])),
      LONGHAUL_HOME: "/h",
      LONGHAUL_SESSION_ID: "s_1",
      LONGHAUL_CALL: "1.1.c",
    });
  });

  it.each(["Asia/Shanghai", undefined])(
    "keeps the time zone the process was started in (%s) when the process has moved to another",
    async (zone) => {
      vi.stubEnv("TZ", zone);
      vi.resetModules();
      const fresh = await import("../../src/process/environment.js");
      vi.stubEnv("TZ", "UTC");
      expect(fresh.commandEnvironment(process.env, marks)["TZ"]).toBe(zone);
      vi.unstubAllEnvs();
    },
  );
});

function forward(store: Awaited<ReturnType<typeof openBench>>["store"]) {
  return {
    read: store.read.bind(store),
    size: store.size.bind(store),
    sync: store.sync.bind(store),
    list: store.list.bind(store),
    remove: store.remove.bind(store),
    locator: store.locator.bind(store),
    check: store.check.bind(store),
    sessions: store.sessions.bind(store),
  };
}
