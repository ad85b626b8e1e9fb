import type { SendMode } from "../../contracts/session.js";
import { command, homeOption, jsonOption } from "../command.js";
import { usage } from "../parse.js";
import { readAll, sessionIdOf, settingsOf } from "./settings.js";

export const sendCommand = command({
  name: "send",
  summary: "Send a session a message",
  words: '<session> "text"',
  minWords: 2,
  maxWords: Infinity,
  options: {
    steer: { type: "boolean", help: "join the running turn at its next step" },
    inject: { type: "boolean", help: "join the next request without opening a turn" },
    id: {
      type: "string",
      value: "id",
      help: "the message's id: the same id is taken once, so a repeat is safe",
    },
    ...jsonOption,
    ...homeOption,
  },
  details: [
    'Without --steer and --inject the message gets a turn of its own, after those before it. "-" reads the text from stdin.',
  ],
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "send");
    if (options.steer === true && options.inject === true)
      throw usage("send takes --steer or --inject, not both", "longhaul send --help");
    const given = words.slice(1).join(" ");
    const text = given === "-" ? await context.orStop(readAll(io.stdin)) : given;
    if (text.trim() === "")
      throw usage("send expected a text, got a blank one", "longhaul send --help");
    const mode: SendMode =
      options.steer === true ? "steer" : options.inject === true ? "inject" : "followup";
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const sent = await context.orStop(
      backend
        .session(id)
        .send(text, { mode, ...(options.id === undefined ? {} : { id: options.id }) }),
    );
    io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session: id, id: sent.id, seq: sent.seq, mode }, undefined, 2)}\n`
        : `sent ${sent.id}\n`,
    );
    return 0;
  },
});
