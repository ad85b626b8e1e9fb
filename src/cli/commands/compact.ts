import type { CompactionOutcome } from "../../client/session-compaction.js";
import { command, homeOption, jsonOption } from "../command.js";
import { oneLine } from "../render/clean.js";
import { sessionIdOf, settingsOf } from "./settings.js";

export const compactCommand = command({
  name: "compact",
  summary: "Replace an idle session's transcript by a summary its model writes",
  words: "<session>",
  minWords: 1,
  options: { ...jsonOption, ...homeOption },
  details: [
    "A long transcript is compacted by itself when it fills its model's context window; this does it now. All but the",
    "newest message is summarised, and the log keeps everything. Messages sent meanwhile wait for it.",
    "Exit code 1 when it came to nothing; nothing to summarise is no failure.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "compact");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const outcome = await context.orStop(backend.session(id).compact());
    const failed = !outcome.changed && outcome.problem !== undefined;
    if (options.json === true)
      io.stdout.write(`${JSON.stringify({ session: id, ...outcome }, undefined, 2)}\n`);
    else (failed ? io.stderr : io.stdout).write(`${outcomeText(outcome)}\n`);
    return failed ? 1 : 0;
  },
});

/** What became of it, in one line. */
export function outcomeText(outcome: CompactionOutcome): string {
  if (outcome.changed) {
    const { messages, tokensBefore, tokensAfter } = outcome;
    return `compacted: ${messages} message${messages === 1 ? "" : "s"} of about ${tokensBefore} tokens ${messages === 1 ? "is" : "are"} now a summary of about ${tokensAfter}`;
  }
  if (outcome.problem === undefined) return "there is nothing to compact";
  const why = outcome.message === undefined ? "" : `: ${oneLine(outcome.message)}`;
  return `not compacted (${outcome.problem})${why}`;
}
