import type { UserMessage } from "../contracts/content.js";

/** Last message of the summarising request: after the conversation itself, so that the provider's cache of it holds. */
export const summaryInstruction = `Stop working on the task for this one reply. The conversation above is about to be replaced by your reply, so write down what is needed to go on with the task and nothing else. Call no tool.

Use these headings, in this order, each with short points, "none" where there is nothing:
# What the user wants (their own words where the wording counts, later corrections included)
# What is decided, and why
# Files and code (exact paths, what was changed, signatures and snippets that are still needed)
# Commands and results (exact commands, error texts, numbers)
# What went wrong and how it was solved
# State of the work, and what is open
# Next step

Copy paths, names, commands, errors and numbers exactly. Do not mention this request or that anything was shortened. When the conversation begins with an earlier summary, keep what is still true of it, drop what is not, and write one summary of both.`;

const preamble =
  "The earlier part of this conversation was replaced by the summary below. Take it as known, do not answer it, and go on with what follows.";

/** Marks messages that stand for a summarised span. */
export const checkpointName = "compaction";

/** The message that replaces a span. */
export function checkpointMessage(compactionId: string, summary: string): UserMessage {
  return {
    id: compactionId,
    role: "user",
    content: [
      { type: "text", text: `${preamble}\n\n<session-summary>\n${summary}\n</session-summary>` },
    ],
    source: { kind: "plugin", name: checkpointName },
  };
}
