import * as z from "zod";
import { errorCodes } from "../contracts/errors.js";

/** A substring, or `/pattern/flags`; see docs/scenarios.md. */
const matcher = z.string().check((context) => {
  try {
    regexOf(context.value);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    context.issues.push({ code: "custom", message, input: context.value });
  }
});
const count = z.int().min(1).max(1_000_000);
const milliseconds = z.int().min(0).max(3_600_000);
const tokens = z.int().min(0);

const expectation = z.strictObject({
  lastUser: matcher.optional(),
  system: matcher.optional(),
  tools: z.array(z.string()).optional(),
  toolResults: z.array(matcher).optional(),
  messages: z.int().min(0).optional(),
});

const call = z
  .strictObject({
    tool: z.string().min(1),
    args: z.record(z.string(), z.json()).optional(),
    rawArgs: z.string().optional(),
    id: z.string().optional(),
  })
  .refine(({ args, rawArgs }) => args === undefined || rawArgs === undefined, {
    message: "expected args or rawArgs, got both",
  });

const usage = z.strictObject({
  inputTokens: tokens.exactOptional(),
  outputTokens: tokens.exactOptional(),
  cachedInputTokens: tokens.exactOptional(),
  reasoningTokens: tokens.exactOptional(),
});

const failure = z.strictObject({
  code: z.enum(errorCodes),
  message: z.string().exactOptional(),
  status: z.int().min(100).max(599).exactOptional(),
  retryAfterMs: milliseconds.exactOptional(),
  afterText: z.string().exactOptional(),
});

const step = z.strictObject({
  expect: expectation.optional(),
  reasoning: z.string().optional(),
  text: z.string().optional(),
  calls: z.array(call).optional(),
  finish: z.enum(["stop", "tool-calls", "max-tokens", "content-filter"]).optional(),
  usage: usage.optional(),
  chunk: count.optional(),
  delayMs: milliseconds.optional(),
  firstDelayMs: milliseconds.optional(),
  failures: z.array(failure).optional(),
  repeat: count.optional(),
});

const turn = z.strictObject({ steps: z.array(step).min(1), repeat: count.optional() });

const defaults = z.strictObject({
  reasoningEffort: z.string().exactOptional(),
  maxTokens: tokens.exactOptional(),
});

export const scenarioSchema = z.strictObject({
  name: z.string().min(1),
  contextWindow: z.int().min(1).optional(),
  defaults: defaults.optional(),
  summary: step.omit({ repeat: true }).optional(),
  turns: z.array(turn).min(1),
});

/** A scripted model's play; the format is docs/scenarios.md. */
export type Scenario = z.infer<typeof scenarioSchema>;
export type ScenarioStep = z.infer<typeof step>;
export type ScenarioExpectation = z.infer<typeof expectation>;

/** The keys an object under this key of a scenario may have; `""` is the scenario itself. */
export const scenarioKeys: Readonly<Record<string, readonly string[]>> = {
  "": Object.keys(scenarioSchema.shape),
  defaults: Object.keys(defaults.shape),
  turns: Object.keys(turn.shape),
  summary: Object.keys(step.shape).filter((key) => key !== "repeat"),
  steps: Object.keys(step.shape),
  expect: Object.keys(expectation.shape),
  calls: Object.keys(call.shape),
  usage: Object.keys(usage.shape),
  failures: Object.keys(failure.shape),
};

/** The pattern of a matcher written `/pattern/flags`, undefined for plain text; throws when it is no pattern. */
export function regexOf(matcherText: string): RegExp | undefined {
  const [, pattern, flags] = /^\/(.+)\/([imsu]*)$/su.exec(matcherText) ?? [];
  return pattern === undefined ? undefined : new RegExp(pattern, flags);
}
