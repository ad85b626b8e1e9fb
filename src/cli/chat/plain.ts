import { StringDecoder } from "node:string_decoder";
import type { Session } from "../backend.js";
import { follow } from "../commands/follow.js";
import { aborted, stopOf, type Io } from "../io.js";
import { failureText } from "../failure.js";
import { terminalOf } from "../render/terminal.js";
import { Transcript } from "../render/transcript.js";
import { Outbox } from "./outbox.js";

/**
 * A chat without a terminal: each line of stdin is a message with a turn of its own, the transcript goes to stdout.
 * Ends when stdin has ended and all is answered: 0 when the last turn completed and every message was taken.
 */
export async function plainChat(io: Io, session: Session, lost: Promise<never>): Promise<number> {
  const { lastSeq } = await session.view();
  const transcript = new Transcript((text) => io.stdout.write(text), {
    ...terminalOf(io.stdout, io.env),
    live: false,
  });
  const following = follow(session, (event) => transcript.event(event), lastSeq);
  let refused = false;
  let last: number | undefined;
  const outbox = new Outbox(session, {
    changed() {},
    accepted: (_message, seq) => {
      last = seq;
    },
    refused(_message, error) {
      refused = true;
      io.stderr.write(failureText(error, false));
    },
  });
  const work = (async () => {
    for await (const line of linesOf(io.stdin))
      if (line.trim() !== "") outbox.add(line, "followup");
    await outbox.empty();
    if (last === undefined) return;
    const view = await session.waitIdle({ after: last, signal: io.stop });
    await following.reached(view.lastSeq);
  })();
  work.catch(() => undefined);
  try {
    await Promise.race([work, lost, following.done, aborted(io.stop)]);
    if (io.stop.aborted) return stopOf(io.stop).exitCode;
    if (last === undefined) return refused ? 1 : 0;
    const outcome = await session.outcome({ after: lastSeq });
    return refused || outcome.kind !== "completed" ? 1 : 0;
  } finally {
    outbox.stop();
    await following.stop();
    transcript.end();
  }
}

async function* linesOf(input: AsyncIterable<Buffer | string>): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  for await (const piece of input) {
    rest += typeof piece === "string" ? piece : decoder.write(piece);
    const lines = rest.split(/\r?\n/);
    rest = lines.pop() ?? "";
    yield* lines;
  }
  yield rest + decoder.end();
}
