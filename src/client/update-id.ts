import { createHash, randomBytes } from "node:crypto";

/**
 * The id under which the server knows a write: the same command with the same content is the same update, so a retry
 * is carried out once. The content is part of it, so that other content under a used id reaches the session, which
 * refuses it (DUPLICATE_ID).
 */
export function updateIdOf(command: string, callerId: string, payload: unknown): string {
  const hash = createHash("sha256");
  for (const part of [command, callerId, JSON.stringify(payload)])
    hash.update(`${part.length}:${part}`);
  return hash.digest("hex").slice(0, 40);
}

/** A fresh session id, `s-<time>-<random>`; ids made later sort later. */
export function freshSessionId(now: number): string {
  return `s-${now.toString(36)}-${randomBytes(4).toString("hex")}`;
}

/** A fresh message or operation id. */
export function freshId(prefix: string, now: number): string {
  return `${prefix}-${now.toString(36)}-${randomBytes(6).toString("hex")}`;
}
