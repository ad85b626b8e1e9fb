import { command, homeOption, jsonOption } from "../command.js";
import { endText } from "./reading.js";
import { sessionIdOf, settingsOf } from "./settings.js";

export const interruptCommand = command({
  name: "interrupt",
  summary: "Stop the running turn; waiting messages stay",
  words: "<session>",
  minWords: 1,
  options: { ...jsonOption, ...homeOption },
  async run(context, words, options) {
    const id = sessionIdOf(words, "interrupt");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const { result } = await context.orStop(backend.session(id).interrupt());
    const text = result === "requested" ? "the turn is being stopped" : "no turn was running";
    context.io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session: id, result }, undefined, 2)}\n`
        : `${text}\n`,
    );
    return 0;
  },
});

export const cancelCommand = command({
  name: "cancel",
  summary: "Stop the running turn and drop waiting messages",
  words: "<session>",
  minWords: 1,
  options: { ...jsonOption, ...homeOption },
  async run(context, words, options) {
    const id = sessionIdOf(words, "cancel");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const { result, removed } = await context.orStop(backend.session(id).cancel());
    const turn = result === "requested" ? "the turn is being stopped" : "no turn was running";
    const text = `${turn}; ${removed} waiting message${removed === 1 ? "" : "s"} dropped`;
    context.io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session: id, result, removed }, undefined, 2)}\n`
        : `${text}\n`,
    );
    return 0;
  },
});

export const closeCommand = command({
  name: "close",
  summary: "End a session for good; its log stays readable",
  words: "<session>",
  minWords: 1,
  options: {
    reason: { type: "string", value: "text", help: "kept in the log" },
    ...jsonOption,
    ...homeOption,
  },
  async run(context, words, options) {
    const id = sessionIdOf(words, "close");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const session = backend.session(id);
    await context.orStop(
      session.close(options.reason === undefined ? {} : { reason: options.reason }),
    );
    const record = await context.orStop(session.record());
    const end = endText(record);
    const answer = { session: id, closed: end === undefined };
    context.io.stdout.write(
      options.json === true
        ? `${JSON.stringify(end === undefined ? answer : { ...answer, state: record.state }, undefined, 2)}\n`
        : end === undefined
          ? `closed ${id}\n`
          : `session ${id} has ended already: ${end}\n`,
    );
    return 0;
  },
});
