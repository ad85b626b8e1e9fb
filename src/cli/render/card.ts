import type { ToolResultBlock } from "../../contracts/content.js";
import type { EventData } from "../../contracts/log.js";
import { oneLine } from "./clean.js";
import { wholeLine } from "./wrap.js";
import { fit, glyphsOf, styled, widthOf, type Terminal } from "./terminal.js";

export type ToolCall = Pick<EventData["tool/call"], "name" | "arguments">;
export type ToolResult = Pick<EventData["tool/result"], "message" | "error" | "meta">;

/**
 * `● bash  make the data  → exit 0, 3 lines  [2]`, one line of at most the terminal's width; `[2]` is the mark. An
 * error is told whole, on more lines where the terminal has a width.
 */
export function resultCard(
  call: ToolCall,
  result: ToolResult,
  terminal: Terminal,
  mark = "",
): readonly string[] {
  const glyphs = glyphsOf(terminal);
  const block = result.message.content.find(
    (one): one is ToolResultBlock => one.type === "tool-result",
  );
  const failed = block?.isError === true || result.error !== undefined;
  const name = nameOf(call);
  const head = `${failed ? glyphs.fault : glyphs.call} ${name}`;
  const arrow = `  ${glyphs.arrow} `;
  const tail = mark === "" ? "" : `  ${mark}`;
  const room = terminal.columns - widthOf(head) - 2 - widthOf(arrow) - widthOf(tail);
  const title = titleOf(call);
  const wanted = summaryOf(block, result);
  const cut = fit(
    wanted,
    Math.max(room - widthOf(title), Math.floor(room / 2), 0),
    glyphs.ellipsis,
  );
  const shown = fit(title, Math.max(room - widthOf(cut), 0), glyphs.ellipsis);
  const summary = failed ? wanted : cut;
  const color = failed ? "red" : "green";
  const line =
    styled(terminal, color, head) +
    (shown === "" ? "" : `  ${shown}`) +
    (summary === "" ? "" : styled(terminal, failed ? "red" : "dim", `${arrow}${summary}`)) +
    styled(terminal, "dim", tail);
  if (!failed) return [line];
  return wholeLine(line, terminal, 2).map((row, index) => (index === 0 ? row : `  ${row}`));
}

/** The line that stands for calls under way. */
export function runningLine(calls: readonly ToolCall[], terminal: Terminal): string {
  const [first] = calls;
  if (first === undefined) return "";
  const glyphs = glyphsOf(terminal);
  const more = calls.length > 1 ? `  (+${calls.length - 1} more)` : "";
  const title = titleOf(first);
  const line = `${glyphs.running} ${nameOf(first)}${title === "" ? "" : `  ${title}`}${more}`;
  return styled(terminal, "dim", fit(line, terminal.columns - 1, glyphs.ellipsis));
}

function nameOf(call: ToolCall): string {
  return oneLine(call.name).slice(0, 64);
}

/** Arguments that say best what a call is about, best first. */
const telling = ["description", "command", "path", "file_path", "pattern", "query", "url"];

function titleOf(call: ToolCall): string {
  const args = parsed(call.arguments);
  if (args === undefined) return oneLine(call.arguments.slice(0, 1_000));
  for (const key of telling) {
    const value = args[key];
    if (typeof value === "string" && value.trim() !== "") return oneLine(value.slice(0, 1_000));
  }
  return Object.keys(args).length === 0 ? "" : oneLine(JSON.stringify(args).slice(0, 1_000));
}

function parsed(text: string): { readonly [key: string]: unknown } | undefined {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function summaryOf(block: ToolResultBlock | undefined, result: ToolResult): string {
  const text = (block?.content ?? []).map((part) => part.text).join("\n");
  if (result.error !== undefined || block?.isError === true) {
    return oneLine(`${result.error?.code ?? ""} ${firstLine(text).replace(/^Error: /, "")}`);
  }
  const ending = endingOf(result);
  const lines = ending === undefined ? linesOf(text) : outputLines(text);
  const [only] = lines;
  const size =
    only === undefined
      ? "no output"
      : lines.length === 1 && ending === undefined
        ? oneLine(only)
        : `${lines.length} line${lines.length === 1 ? "" : "s"}`;
  return ending === undefined ? size : `${ending}, ${size}`;
}

/** How a command ended, for tools that run one. */
function endingOf({ meta = {} }: ToolResult): string | undefined {
  const { exitCode, signal, timedOut } = meta;
  if (timedOut === true) return "timed out";
  if (typeof signal === "string") return signal;
  return typeof exitCode === "number" ? `exit ${exitCode}` : undefined;
}

/** The lines of a command's own output, without the marks that say how it ended. */
function outputLines(text: string): readonly string[] {
  return linesOf(
    text.replace(/(?:^|\n)\[(?:exit code: \d+|signal: \w+|timed out after \d+ ms)\]$/gm, ""),
  ).filter((line) => line !== "(no output)");
}

function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function firstLine(text: string): string {
  return text.trimStart().split("\n", 1)[0] ?? "";
}
