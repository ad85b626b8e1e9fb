import type { JobOutputPiece } from "../../client/job-output.js";
import { command, homeOption, type Context } from "../command.js";
import { stopOf, type Output } from "../io.js";
import { usage } from "../parse.js";
import { Cleaner } from "../render/clean.js";
import { suggest } from "../suggest.js";
import { jobIdOf } from "./jobs.js";
import { sessionIdOf, settingsOf } from "./settings.js";

export const jobsLogsCommand = command({
  name: "jobs logs",
  summary: "Print what a background job has printed",
  words: "<session> <job>",
  minWords: 2,
  options: {
    follow: { type: "boolean", short: "f", help: "go on until the job has ended" },
    stream: { type: "string", value: "name", help: "only stdout, or only stderr" },
    json: {
      type: "boolean",
      help: "print pieces {stream, offset, text}, one JSON object a line; an error is one on stderr",
    },
    ...homeOption,
  },
  details: [
    "What went to stderr goes to stderr. A terminal gets it without control characters, a pipe or file byte for byte.",
    "The model's own reading of the output is not moved.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "jobs logs");
    const job = jobIdOf(words, "jobs logs");
    const only = options.stream === undefined ? undefined : streamOf(options.stream);
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const pieces = backend
      .session(id)
      .jobOutput(job, { follow: options.follow === true, signal: io.stop });
    const printer = options.json === true ? jsonPrinter(context) : bytePrinter(context);
    try {
      const printing = (async () => {
        for await (const piece of pieces) {
          const other = piece.stream === "stderr" ? "stderr" : "stdout";
          if (only === undefined || only === other) printer.piece(piece);
        }
      })();
      await context.orStop(printing);
    } finally {
      printer.end();
    }
    return io.stop.aborted ? stopOf(io.stop).exitCode : 0;
  },
});

interface Printer {
  piece(piece: JobOutputPiece): void;
  end(): void;
}

function jsonPrinter({ io }: Context): Printer {
  return {
    piece: ({ stream, offset, text }) =>
      void io.stdout.write(`${JSON.stringify({ stream, offset, text })}\n`),
    end() {},
  };
}

function bytePrinter({ io }: Context): Printer {
  const sinks = new Map<string, Sink>();
  return {
    piece(piece) {
      const output = piece.stream === "stderr" ? io.stderr : io.stdout;
      const sink = sinks.get(piece.stream) ?? new Sink(output);
      sinks.set(piece.stream, sink);
      const missing = sink.take(piece);
      if (missing > 0) io.stderr.write(`(${missing} bytes of ${piece.stream} were dropped)\n`);
      sink.put(piece);
    },
    end() {
      for (const sink of sinks.values()) sink.end();
    },
  };
}

/** One stream on its way to one output. */
class Sink {
  readonly #output: Output;
  readonly #cleaner: Cleaner | undefined;
  #next = 0;
  #lineOpen = false;

  constructor(output: Output) {
    this.#output = output;
    if (output.isTTY === true) this.#cleaner = new Cleaner();
  }

  /** Moves behind the piece; returns how many bytes before it are missing. */
  take({ offset, bytes }: JobOutputPiece): number {
    const missing = offset - this.#next;
    this.#next = offset + bytes.length;
    return missing;
  }

  put({ text, bytes }: JobOutputPiece): void {
    if (this.#cleaner === undefined) this.#output.write(bytes);
    else this.#show(this.#cleaner.push(text));
  }

  /** A prompt that follows begins on a line of its own. */
  end(): void {
    if (this.#cleaner === undefined) return;
    this.#show(this.#cleaner.end());
    if (this.#lineOpen) this.#output.write("\n");
  }

  #show(text: string): void {
    if (text === "") return;
    this.#lineOpen = !text.endsWith("\n");
    this.#output.write(text);
  }
}

const streams = ["stdout", "stderr"] as const;

function streamOf(text: string): (typeof streams)[number] {
  const found = streams.find((stream) => stream === text);
  if (found !== undefined) return found;
  const near = suggest(text, streams);
  throw usage(
    `--stream expected stdout or stderr, got ${JSON.stringify(text)}${near === undefined ? "" : `; did you mean "${near}"?`}`,
    "longhaul jobs logs --help",
  );
}
