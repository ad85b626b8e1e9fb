import type { WatchEvent } from "../../client/types.js";
import { command, homeOption, type Context } from "../command.js";
import { aborted, stopOf } from "../io.js";
import { terminalOf } from "../render/terminal.js";
import { Transcript } from "../render/transcript.js";
import { follow } from "./follow.js";
import { endText, readTimeoutMs } from "./reading.js";
import { sessionIdOf, settingsOf, wholeNumber } from "./settings.js";

export const logCommand = command({
  name: "log",
  summary: "Print a session's transcript, or its log entries",
  words: "<session>",
  minWords: 1,
  options: {
    after: { type: "string", value: "n", help: "only entries after number n (default -1: all)" },
    follow: { type: "boolean", short: "f", help: "go on as the session does, until it is closed" },
    json: {
      type: "boolean",
      help: "print the log entries, one JSON object a line; an error is one on stderr",
    },
    ...homeOption,
  },
  async run(context, words, options) {
    const id = sessionIdOf(words, "log");
    const after = options.after === undefined ? -1 : wholeNumber(options.after, "--after");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const session = backend.session(id);
    const printer = options.json === true ? jsonPrinter(context) : textPrinter(context);
    try {
      if (options.follow !== true) {
        const reading = (async () => {
          for await (const entry of session.log({ after, timeoutMs: readTimeoutMs }))
            printer.event({ type: "entry", entry });
        })();
        await context.orStop(reading);
        return 0;
      }
      const closed = new AbortController();
      const following = follow(
        session,
        (event) => {
          printer.event(event);
          if (event.type === "entry" && event.entry.type === "session/close") closed.abort();
        },
        after,
      );
      const { stop } = context.io;
      try {
        await Promise.race([following.done, aborted(closed.signal), aborted(stop)]);
      } finally {
        await following.stop();
      }
      if (stop.aborted) return stopOf(stop).exitCode;
      if (!closed.signal.aborted) {
        const end = endText(await context.orStop(session.record()));
        printer.end();
        if (end !== undefined) context.io.stderr.write(`session ${id} has ended: ${end}\n`);
      }
      return 0;
    } finally {
      printer.end();
    }
  },
});

interface Printer {
  event(event: WatchEvent): void;
  end(): void;
}

function textPrinter({ io }: Context): Printer {
  return new Transcript((text) => io.stdout.write(text), terminalOf(io.stdout, io.env));
}

function jsonPrinter({ io }: Context): Printer {
  return {
    event(event) {
      if (event.type === "entry") io.stdout.write(`${JSON.stringify(event.entry)}\n`);
    },
    end() {},
  };
}
