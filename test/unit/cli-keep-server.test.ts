import { createServer, type Server } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { keepServer } from "../../src/cli/keep-server.js";

let listener: Server;
let address: string;
const controller = () => new AbortController();

beforeEach(async () => {
  listener = createServer((socket) => socket.destroy());
  address = await listen(listener);
});

afterEach(() => close(listener));

it("leaves a server that listens alone and ends with the signal", async () => {
  const ending = controller();
  const ensure = vi.fn();
  let seen = 0;
  listener.on("connection", () => (seen += 1));
  const keeping = keepServer({ address, ensure }, ending.signal, 5);
  await vi.waitFor(() => expect(seen).toBeGreaterThan(2), { timeout: 10_000 });
  ending.abort();
  await keeping;
  expect(ensure).not.toHaveBeenCalled();
});

it("starts a server again that does not listen any more", async () => {
  await close(listener);
  const ending = controller();
  const ensure = vi.fn(async () => {
    listener = createServer((socket) => socket.destroy());
    await listen(listener, Number(address.split(":")[1]));
    ending.abort();
  });
  await keepServer({ address, ensure }, ending.signal, 5);
  expect(ensure).toHaveBeenCalledOnce();
});

it("rejects when it cannot be started again", async () => {
  await close(listener);
  const stopped = new Error("it was stopped on purpose");
  const keeping = keepServer(
    { address, ensure: () => Promise.reject(stopped) },
    controller().signal,
    5,
  );
  await expect(keeping).rejects.toBe(stopped);
});

function listen(server: Server, port = 0): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      const bound = server.address();
      resolve(typeof bound === "object" && bound !== null ? `127.0.0.1:${bound.port}` : "");
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
