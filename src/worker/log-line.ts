import type { LogEntry } from "@temporalio/worker";

/**
 * One line of a worker's log, or undefined for what nobody can act on: that the host's queues have no workflows (on
 * purpose), and the native core's warnings about calls it retries. A failing workflow task is always said, with its
 * reason: until it is cured, the session stands still.
 */
export function logLine(entry: LogEntry): string | undefined {
  const { level, message, meta = {} } = entry;
  if (message.startsWith("No workflows registered")) return undefined;
  const failing = /workflow (task|activation)|nondetermin/i.test(message);
  if (meta["sdkComponent"] === "core" && level !== "ERROR" && !failing) return undefined;
  const time = new Date(Number(entry.timestampNanos / 1_000_000n)).toISOString();
  const reason = reasonOf(meta);
  const which = textOf(meta["workflowId"]) ?? textOf(meta["run_id"] ?? meta["runId"]);
  return [
    `${time} [${level}] ${message}`,
    which === undefined ? "" : ` of ${which}`,
    reason === undefined ? "" : `: ${reason}`,
  ].join("");
}

/** The core gives a failure as its debug text, the SDK an error object. */
function reasonOf(meta: NonNullable<LogEntry["meta"]>): string | undefined {
  const error: unknown = meta["error"];
  if (error instanceof Error) return oneLine(`${error.name}: ${error.message}`);
  const text = textOf(meta["failure"]) ?? textOf(error);
  const quoted = text === undefined ? undefined : /message: "((?:[^"\\]|\\.)*)"/.exec(text)?.[1];
  return oneLine(quoted?.replaceAll(String.raw`\"`, '"') ?? text);
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function oneLine(text: string | undefined): string | undefined {
  return text?.replaceAll(/\s+/g, " ").slice(0, 500);
}
