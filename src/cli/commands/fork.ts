import { command, homeOption, jsonOption } from "../command.js";
import { sessionIdOf, settingsOf, wholeNumber } from "./settings.js";

export const forkCommand = command({
  name: "fork",
  summary: "Begin a new session with the log of another",
  words: "<session>",
  minWords: 1,
  options: {
    at: { type: "string", value: "n", help: "last entry it inherits (default: the last one)" },
    id: { type: "string", value: "id", help: "of the new session (default: a fresh one)" },
    title: { type: "string", value: "text", help: "of the new session" },
    host: { type: "string", value: "id", help: "its host (default: that of the other)" },
    ...jsonOption,
    ...homeOption,
  },
  details: [
    "The entry lies outside any turn; the log shows their numbers with --json. The other session goes on untouched.",
    "Inherited are transcript, todo list and configuration; inbox, reminders and jobs are the new session's own.",
  ],
  async run(context, words, options) {
    const id = sessionIdOf(words, "fork");
    const boundary = options.at === undefined ? undefined : wholeNumber(options.at, "--at");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home, register: true });
    const forked = await context.orStop(
      backend.fork(id, {
        ...(boundary === undefined ? {} : { boundary }),
        ...(options.id === undefined ? {} : { id: options.id }),
        ...(options.title === undefined ? {} : { title: options.title }),
        ...(options.host === undefined ? {} : { host: options.host }),
        waitReady: false,
      }),
    );
    context.io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session: forked.id, parent: id }, undefined, 2)}\n`
        : `forked ${id} as ${forked.id}\n`,
    );
    return 0;
  },
});
