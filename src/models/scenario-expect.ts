import type { Message, TextBlock, ToolResultBlock } from "../contracts/content.js";
import type { ModelFailure, ModelRequest } from "../contracts/model.js";
import { regexOf, type ScenarioExpectation } from "./scenario.js";
import { expand, type Place } from "./scenario-text.js";

/** SCENARIO_EXPECTATION for the first expectation a request does not meet: what was expected and what came. */
export function unmetExpectation(
  expectation: ScenarioExpectation,
  request: ModelRequest,
  place: Place,
): ModelFailure | undefined {
  const mismatch = mismatchOf(expectation, request, place);
  if (mismatch === undefined) return undefined;
  return {
    code: "SCENARIO_EXPECTATION",
    message: `turn.step ${place.turn}.${place.step}: ${mismatch}`,
  };
}

function mismatchOf(
  expectation: ScenarioExpectation,
  request: ModelRequest,
  place: Place,
): string | undefined {
  const { lastUser, system, tools, toolResults, messages } = expectation;
  if (messages !== undefined && request.messages.length !== messages) {
    return `expected ${messages} messages, came ${request.messages.length}`;
  }
  if (system !== undefined && !matches(system, request.system ?? "", place)) {
    return differs("the system prompt", system, request.system, place);
  }
  if (lastUser !== undefined) {
    const came = lastUserText(request.messages);
    if (came === undefined || !matches(lastUser, came, place))
      return differs("the last user message", lastUser, came, place);
  }
  const offered = request.tools.map(({ name }) => name);
  const missing = tools?.filter((name) => !offered.includes(name)) ?? [];
  if (missing.length > 0)
    return `expected the tools ${missing.join(", ")} to be offered, came ${listed(offered)}`;
  return toolResults === undefined
    ? undefined
    : resultMismatch(toolResults, lastResults(request.messages), place);
}

function resultMismatch(
  expected: readonly string[],
  came: readonly string[],
  place: Place,
): string | undefined {
  if (expected.length !== came.length) {
    return `expected ${expected.length} tool results of the step before, came ${came.length}: ${listed(came.map(quoted))}`;
  }
  for (const [index, matcher] of expected.entries()) {
    const text = came[index] ?? "";
    if (!matches(matcher, text, place))
      return differs(`tool result ${index + 1}`, matcher, text, place);
  }
  return undefined;
}

function matches(matcher: string, text: string, place: Place): boolean {
  const wanted = expand(matcher, place);
  return regexOf(wanted)?.test(text) ?? text.includes(wanted);
}

function differs(what: string, matcher: string, came: string | undefined, place: Place): string {
  const wanted = expand(matcher, place);
  const verb = regexOf(wanted) === undefined ? "contain" : "match";
  const shown = verb === "match" ? wanted : quoted(wanted);
  return `expected ${what} to ${verb} ${shown}, came ${came === undefined ? "none" : quoted(came)}`;
}

/** Text of the last user message that is not a tool's result. */
function lastUserText(messages: readonly Message[]): string | undefined {
  const spoken = messages.findLast(
    (message) => message.role === "user" && message.content.some(({ type }) => type === "text"),
  );
  return spoken === undefined
    ? undefined
    : textOf(spoken.content.filter((block) => block.type === "text"));
}

/** Texts of the tool results since the last assistant message. */
function lastResults(messages: readonly Message[]): readonly string[] {
  const start = messages.findLastIndex(({ role }) => role === "assistant") + 1;
  return messages
    .slice(start)
    .flatMap(({ content }): readonly ToolResultBlock[] =>
      content.filter((block) => block.type === "tool-result"),
    )
    .map(({ content }) => textOf(content));
}

function textOf(blocks: readonly TextBlock[]): string {
  return blocks.map(({ text }) => text).join("\n");
}

function listed(items: readonly string[]): string {
  return items.length === 0 ? "none" : items.join(", ");
}

/** As JSON, so that it is one line; long texts are cut. */
function quoted(text: string): string {
  return JSON.stringify(text.length <= 300 ? text : `${text.slice(0, 300)}…`);
}
