import { command, homeOption, jsonOption } from "../command.js";
import { usage } from "../parse.js";
import { sessionIdOf, settingsOf } from "./settings.js";

export const suspendCommand = command({
  name: "suspend",
  summary: "Stop a session's turn and let nothing open one",
  words: "<session>",
  minWords: 1,
  options: { ...jsonOption, ...homeOption },
  details: [
    "Messages, reminders and jobs stay; jobs run on. longhaul resume goes on, and so does a message to it.",
  ],
  async run(context, words, options) {
    const id = sessionIdOf(words, "suspend");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    await context.orStop(backend.session(id).suspend());
    context.io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session: id, suspended: true }, undefined, 2)}\n`
        : `suspended ${id}\n`,
    );
    return 0;
  },
});

export const resumeCommand = command({
  name: "resume",
  summary: "Let a suspended session go on; what is overdue comes now",
  words: "<session>",
  minWords: 1,
  options: { ...jsonOption, ...homeOption },
  async run(context, words, options) {
    const id = sessionIdOf(words, "resume");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    await context.orStop(backend.session(id).resume());
    context.io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session: id, suspended: false }, undefined, 2)}\n`
        : `resumed ${id}\n`,
    );
    return 0;
  },
});

export const rebindCommand = command({
  name: "rebind",
  summary: "Move a session to another host",
  words: "<session> <host>",
  minWords: 2,
  options: { ...jsonOption, ...homeOption },
  details: [
    "For a host that is lost or being emptied (longhaul hosts). The session is told; its jobs stay where they run.",
  ],
  async run(context, words, options) {
    const id = sessionIdOf(words, "rebind");
    const host = words[1]?.trim() ?? "";
    if (host === "") throw usage("rebind expected <host>, got an empty word", "longhaul hosts");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    await context.orStop(backend.session(id).rebind(host));
    context.io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session: id, host }, undefined, 2)}\n`
        : `session ${id} is bound to host ${host}\n`,
    );
    return 0;
  },
});
