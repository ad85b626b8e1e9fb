import type { JobOutputPiece } from "../../client/job-output.js";
import { LonghaulError } from "../../contracts/errors.js";
import type { Session } from "../backend.js";
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
    "A note on stderr tells when the job's worker was lost: its last output may be missing then.",
    "The model's own reading of the output is not moved.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "jobs logs");
    const job = jobIdOf(words, "jobs logs");
    const only = options.stream === undefined ? undefined : streamOf(options.stream);
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const session = backend.session(id);
    const pieces = session.jobOutput(job, { follow: options.follow === true, signal: io.stop });
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
    if (!io.stop.aborted && (await context.orStop(lostWorker(session, job, io.stop))))
      printer.note("[output may be incomplete: worker lost]");
    return io.stop.aborted ? stopOf(io.stop).exitCode : 0;
  },
});

/** Did the job end with its worker? When nobody can say, the output is shown without a word about it. */
async function lostWorker(
  session: Pick<Session, "waitJob">,
  job: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const { finishedAt, detail } = await session.waitJob(job, { timeoutMs: 1, signal });
    return finishedAt !== undefined && detail?.startsWith("worker lost") === true;
  } catch (error) {
    if (error instanceof LonghaulError) return false;
    throw error;
  }
}

interface Printer {
  piece(piece: JobOutputPiece): void;
  end(): void;
  /** A line on stderr, after the end. */
  note(line: string): void;
}

function jsonPrinter({ io }: Context): Printer {
  return {
    piece: ({ stream, offset, text }) =>
      void io.stdout.write(`${JSON.stringify({ stream, offset, text })}\n`),
    end() {},
    note: (line) => void io.stderr.write(`${line}\n`),
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
    note(line) {
      const open = sinks.get("stderr")?.lineOpen === true;
      io.stderr.write(`${open ? "\n" : ""}${line}\n`);
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
    if (this.#cleaner === undefined) {
      this.#lineOpen = bytes.at(-1) !== newline;
      this.#output.write(bytes);
    } else this.#show(this.#cleaner.push(text));
  }

  /** A prompt that follows begins on a line of its own. */
  end(): void {
    if (this.#cleaner === undefined) return;
    this.#show(this.#cleaner.end());
    if (this.#lineOpen) this.#output.write("\n");
    this.#lineOpen = false;
  }

  /** Was the last line left without its end? */
  get lineOpen(): boolean {
    return this.#lineOpen;
  }

  #show(text: string): void {
    if (text === "") return;
    this.#lineOpen = !text.endsWith("\n");
    this.#output.write(text);
  }
}

const newline = 10;
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
