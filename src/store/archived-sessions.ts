import { createHash } from "node:crypto";
import type { ArchivedSession } from "../contracts/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import { archivedSessionSchema } from "../contracts/schemas/archive.js";
import type { Store } from "../contracts/store.js";
import { damaged, readWhole, writeWhole } from "./archive-file.js";

const prefix = "archived/";

/** How a session ended: a line of JSON, and one with its SHA-256. Idempotent; what was said of a run first stays. */
export async function markEnded(store: Store, ended: ArchivedSession): Promise<void> {
  const stream = `${prefix}${ended.run}`;
  if ((await readMark(store, ended.session, stream)) !== undefined) return;
  const json = `${JSON.stringify(ended)}\n`;
  await writeWhole(store, ended.session, stream, `${json}${digestOf(json)}\n`);
}

/** Of the run that closed last; undefined when none is marked. LOG_CORRUPT. */
export async function readEnded(
  store: Store,
  session: string,
): Promise<ArchivedSession | undefined> {
  const streams = await store.list(session, prefix);
  const marks = await Promise.all(streams.map(({ stream }) => readMark(store, session, stream)));
  return marks
    .filter((mark) => mark !== undefined)
    .toSorted((one, other) => other.closedAt - one.closedAt)[0];
}

/** Those that closed last first. Rejects with the first LOG_CORRUPT after all that can be read were given. */
export async function* listEnded(store: Store): AsyncGenerator<ArchivedSession, void, undefined> {
  const found: ArchivedSession[] = [];
  const damages: LonghaulError[] = [];
  for await (const session of store.sessions()) {
    try {
      const ended = await readEnded(store, session);
      if (ended !== undefined) found.push(ended);
    } catch (error) {
      if (!(error instanceof LonghaulError && error.code === "LOG_CORRUPT")) throw error;
      damages.push(error);
    }
  }
  yield* found.toSorted((one, other) => other.closedAt - one.closedAt);
  const [damage] = damages;
  if (damage !== undefined) throw damage;
}

/** Undefined when there is none, or its writing was interrupted. */
async function readMark(
  store: Store,
  session: string,
  stream: string,
): Promise<ArchivedSession | undefined> {
  if ((await store.size(session, stream)) === undefined) return undefined;
  const text = (await readWhole(store, session, stream)).toString("utf8");
  const lines = text.split("\n");
  if (lines.length < 3) return undefined;
  const [json = "", digest] = lines;
  const { data } = archivedSessionSchema.safeParse(
    digestOf(`${json}\n`) === digest ? JSON.parse(json) : undefined,
  );
  if (data === undefined) throw damaged(store, session, stream, "its text is not what was written");
  if (data.session !== session || `${prefix}${data.run}` !== stream)
    throw damaged(store, session, stream, `it is the end of ${data.session}, run ${data.run}`);
  return data;
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
