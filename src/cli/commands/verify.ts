import { command, homeOption, jsonOption } from "../command.js";
import { oneLine } from "../render/clean.js";
import { sessionIdOf, settingsOf } from "./settings.js";

export const verifyCommand = command({
  name: "verify",
  summary: "Hold a session's log against its archive and its history",
  words: "<session>",
  minWords: 1,
  options: { ...jsonOption, ...homeOption },
  details: [
    "Checks that no segment of the archive is missing or changed, that each entry of the log follows from those before",
    "it, that Temporal's histories had the model shown what the log says, and that the session shows its log.",
    "One line a check; exit code 1 when one fails, with the first thing that is wrong.",
  ],
  async run(context, words, options) {
    const id = sessionIdOf(words, "verify");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const report = await context.orStop(backend.verify(id));
    const { stdout } = context.io;
    if (options.json === true)
      stdout.write(`${JSON.stringify({ session: id, ...report }, undefined, 2)}\n`);
    else
      for (const { name, ok, text } of report.checks)
        stdout.write(`${ok ? "ok  " : "FAIL"}  ${name.padEnd(11)}  ${oneLine(text)}\n`);
    return report.ok ? 0 : 1;
  },
});
