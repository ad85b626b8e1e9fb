import type { ServerStatus } from "../server/index.js";

/** What to say when this process ends at once: the embedded server that it was the last to use stays up. */
export async function serverLeftBehind(home: string): Promise<string | undefined> {
  const { serverStatus } = await import("../server/index.js");
  return leftBehind(await serverStatus({ home }), process.pid);
}

/** Undefined when the server is down, is to stay up, or has other users. */
export function leftBehind(
  status: Pick<ServerStatus, "running" | "keep" | "users">,
  pid: number,
): string | undefined {
  if (!status.running || status.keep || status.users.some((user) => user.pid !== pid))
    return undefined;
  return "the Temporal server keeps running; the next command stops it when it ends, or: longhaul server stop";
}
