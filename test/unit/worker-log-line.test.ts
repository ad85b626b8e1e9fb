import type { LogEntry } from "@temporalio/worker";
import { describe, expect, test } from "vitest";
import { logLine } from "../../src/worker/log-line.js";

function entry(level: LogEntry["level"], message: string, meta: LogEntry["meta"] = {}): LogEntry {
  return { level, message, meta, timestampNanos: 1_700_000_000_000_000_000n };
}

describe("a line of the worker's log", () => {
  test("says which run's workflow task fails, and why, also when the core only warns", () => {
    const failure =
      'Failure { failure: Some(Failure { message: "[TMPRL1100] Nondeterminism error: \\"a\\" is not b", source: "" }) }';
    const meta = { sdkComponent: "core", run_id: "run-1", failure };
    expect(logLine(entry("WARN", "Failing workflow task", meta))).toBe(
      '2023-11-14T22:13:20.000Z [WARN] Failing workflow task of run-1: [TMPRL1100] Nondeterminism error: "a" is not b',
    );
  });

  test("gives an error of the SDK in one line, without its stack", () => {
    const meta = {
      sdkComponent: "worker",
      workflowId: "s-1",
      error: new TypeError("no\nsuch thing"),
    };
    expect(logLine(entry("ERROR", "Failed to process Workflow Activation", meta))).toBe(
      "2023-11-14T22:13:20.000Z [ERROR] Failed to process Workflow Activation of s-1: TypeError: no such thing",
    );
  });

  test("leaves out the core's warnings about calls it retries, and queues without workflows", () => {
    expect(
      logLine(entry("WARN", "gRPC call failed, retrying", { sdkComponent: "core" })),
    ).toBeUndefined();
    expect(
      logLine(entry("WARN", "No workflows registered, not polling", { sdkComponent: "worker" })),
    ).toBeUndefined();
    expect(logLine(entry("ERROR", "connection lost", { sdkComponent: "core" }))).toContain(
      "connection lost",
    );
  });
});
