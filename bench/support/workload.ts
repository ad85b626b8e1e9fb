import type { LogEntry } from "../../src/contracts/log.js";

/** What one turn of a bench does. Sizes in bytes. */
export interface Workload {
  readonly name: string;
  /** Steps with tool calls; one more step with text alone ends the turn. */
  readonly steps: number;
  readonly text: number;
  readonly tool: "none" | "todo_write" | "produce" | "produce_at_once";
  readonly callsPerStep: number;
  /** Text among a call's arguments. */
  readonly argument: number;
  readonly result: number;
  /** Messages of earlier turns. */
  readonly transcript: readonly number[];
}

export interface Reply {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
}

/** The scenario (docs/scenarios.md) that plays the workload to a session. */
export function scenarioOf(load: Workload): object {
  const calls = Array.from({ length: load.callsPerStep }, () => ({
    tool: load.tool,
    args: argumentsOf(load, (bytes) => `{{bytes:${bytes}}}`, "${n}"),
  }));
  const text = `{{bytes:${load.text}}}`;
  const earlier =
    load.transcript.length === 0
      ? []
      : [{ repeat: load.transcript.length, steps: [{ text: "Noted." }] }];
  const working = load.tool === "none" ? [] : [{ repeat: load.steps, text, calls }];
  return { name: load.name, turns: [...earlier, { steps: [...working, { text }] }] };
}

/** The same answers as plain values, for programs without Longhaul. Steps from 1. */
export function replyOf(load: Workload, step: number): Reply {
  const text = "x".repeat(load.text);
  if (load.tool === "none" || step > load.steps) return { text, calls: [] };
  const args = JSON.stringify(argumentsOf(load, (bytes) => "x".repeat(bytes), String(step)));
  return {
    text,
    calls: Array.from({ length: load.callsPerStep }, () => ({ name: load.tool, arguments: args })),
  };
}

function argumentsOf(load: Workload, fill: (bytes: number) => string, n: string): object {
  if (load.tool === "todo_write") {
    const todos = ["read the report", `work on part ${n}`, "tell the others"];
    const statuses = ["completed", "in_progress", "pending"];
    return { todos: todos.map((content, index) => ({ content, status: statuses[index] })) };
  }
  return { bytes: load.result, ...(load.argument === 0 ? {} : { note: fill(load.argument) }) };
}

export function modelCalls(load: Workload): number {
  return load.tool === "none" ? 1 : load.steps + 1;
}

/** Calls of tools that are not the session's own. */
export function worldCalls(load: Workload): number {
  return load.tool === "none" || load.tool === "todo_write" ? 0 : load.steps * load.callsPerStep;
}

/**
 * UTF-8 bytes of what the model and the tools of the world produced. Results of state tools are not counted:
 * workflow code makes them, and they never enter history.
 */
export function newContent(entries: readonly LogEntry[]): number {
  let bytes = 0;
  const own = new Set<string>();
  const add = (text: string): void => {
    bytes += Buffer.byteLength(text, "utf8");
  };
  for (const entry of entries) {
    if (entry.type === "assistant/message") {
      for (const block of entry.data.message.content) {
        if (block.type === "tool-call") {
          if (block.name === "todo_write") own.add(block.callId);
          add(block.name + block.arguments);
        } else add(block.text);
      }
    } else if (entry.type === "tool/result") {
      for (const block of entry.data.message.content) {
        if (block.type === "tool-result" && !own.has(block.callId)) {
          for (const { text } of block.content) add(text);
        }
      }
    }
  }
  return bytes;
}
