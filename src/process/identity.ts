import { type ProcessTable, processTable } from "./process-table.js";

/** Names one process for good: a pid alone may be another process tomorrow. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
  readonly bootId: string;
}

/** Undefined when the process is gone. */
export async function identityOf(
  pid: number,
  table: ProcessTable = processTable,
): Promise<ProcessIdentity | undefined> {
  const startTime = await table.startTime(pid);
  return startTime === undefined ? undefined : { pid, startTime, bootId: await table.bootId() };
}

export function parseIdentity(text: string): ProcessIdentity | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  if (!("pid" in value && "startTime" in value && "bootId" in value)) return undefined;
  const { pid, startTime, bootId } = value;
  if (typeof pid !== "number" || !Number.isSafeInteger(pid) || pid <= 1) return undefined;
  return typeof startTime === "string" && typeof bootId === "string"
    ? { pid, startTime, bootId }
    : undefined;
}
