import type { ToolOutcome } from "../contracts/tools.js";
import { fit } from "./job-bytes.js";
import { outputMark, resultMark } from "./job-texts.js";

/** The default rendering of a result, and the parts that are cut when it is too long. */
export interface BoundedText {
  readonly shown: string;
  readonly content: string;
  /** Kept whole, after the mark. */
  readonly suffix: string;
}

/**
 * The result of `job_output` or `job_kill` within the job's output limit, after every policy (spec/jobs §11): a text that is
 * still the default rendering keeps its status line, anything else its end. Several blocks, or none, pass untouched.
 */
export function boundJobResult(
  outcome: ToolOutcome,
  limit: number | undefined,
  rendered?: BoundedText,
): ToolOutcome {
  const [block] = outcome.content;
  if (limit === undefined || block === undefined || outcome.content.length > 1) return outcome;
  const text =
    !outcome.isError && rendered !== undefined && block.text === rendered.shown
      ? fit(rendered.content, rendered.suffix, limit, outputMark)
      : fit(block.text, "", limit, resultMark);
  return text === block.text ? outcome : { ...outcome, content: [{ ...block, text }] };
}
