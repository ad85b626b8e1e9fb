import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

export interface KeptServer {
  /** `host:port` */
  readonly address: string;
  ensure(): Promise<void>;
}

/**
 * Looks after the embedded server while a worker runs: when nothing listens at its address any more it is started
 * again, so that a killed server costs the sessions a moment. Resolves by the signal; rejects when the server was
 * stopped on purpose or cannot be started.
 */
export async function keepServer(
  server: KeptServer,
  signal: AbortSignal,
  everyMs = 1_000,
): Promise<void> {
  for (;;) {
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    if (!(await listens(server.address))) await server.ensure();
  }
}

function listens(address: string): Promise<boolean> {
  const at = address.lastIndexOf(":");
  return new Promise((resolve) => {
    const socket = connect({
      host: address.slice(0, at),
      port: Number(address.slice(at + 1)),
      timeout: 5_000,
    });
    const answer = (up: boolean) => {
      socket.destroy();
      resolve(up);
    };
    socket.once("connect", () => answer(true));
    // A full queue is no death; only a refusal is.
    socket.once("timeout", () => answer(true));
    socket.once("error", () => answer(false));
  });
}
