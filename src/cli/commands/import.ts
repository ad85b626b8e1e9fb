import { open, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { sessionConfig, type Settings } from "../../config.js";
import { LonghaulError } from "../../contracts/errors.js";
import type { ImportOptions } from "../../client/types.js";
import type { Backend } from "../backend.js";
import { command, homeOption, jsonOption } from "../command.js";
import { openLogZip, type LogZip } from "../log-zip.js";
import { settingsOf } from "./settings.js";

export const importCommand = command({
  name: "import",
  summary: "Go on with an exported log in a new session",
  words: "<file.jsonl|file.zip>",
  minWords: 1,
  options: {
    id: { type: "string", value: "id", help: "of the new session (default: a fresh one)" },
    title: { type: "string", value: "text", help: "of the new session" },
    host: { type: "string", value: "id", help: "its host (default: whichever answers)" },
    model: {
      type: "string",
      value: "model",
      help: "provider/model, or scripted:<file> (default: the log's own, else that of new sessions)",
    },
    ...jsonOption,
    ...homeOption,
  },
  details: [
    "Reads what longhaul export writes, and logs of the reference harness (header version 0, JSON lines).",
    "A turn that the log ends in is closed as interrupted; what waits in its inbox waits for the next message.",
    "A session of another harness gets the configuration of new sessions, and works where its log says.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const settings = settingsOf(context, options);
    const path = resolve(io.cwd, words[0] ?? "");
    const file = await context.orStop(readLog(path));
    try {
      const backend = await context.backend({ home: settings.home, register: true });
      const { session, notes } = await context.orStop(
        backend.importSession(file.text, {
          ...(options.id === undefined ? {} : { id: options.id }),
          ...(options.title === undefined ? {} : { title: options.title }),
          ...(options.host === undefined ? {} : { host: options.host }),
          ...configOf(settings, options.model !== undefined, file.text),
          waitReady: false,
        }),
      );
      await context.orStop(keepStreams(file, backend, session.id));
      const { entries, dropped, closed, unused } = notes;
      if (options.json === true) {
        io.stdout.write(`${JSON.stringify({ session: session.id, ...notes }, undefined, 2)}\n`);
        return 0;
      }
      const note = (text: string): unknown => io.stderr.write(`note: ${text}\n`);
      if (dropped > 0)
        note(`the log's torn end was left out: ${dropped} ${dropped === 1 ? "line" : "lines"}`);
      if (closed > 0) note(`the log ends in a turn: it was closed as interrupted`);
      if (unused.length > 0) note(`kept, without effect here: ${unused.join(", ")}`);
      io.stdout.write(`imported ${session.id}: ${entries} entries\n`);
      return 0;
    } finally {
      file.close?.();
    }
  },
});

/** The configuration of new sessions for a log that tells none; `--model` goes before the log's own. */
function configOf(
  settings: Settings,
  asked: boolean,
  text: string,
): Pick<ImportOptions, "config" | "fallbackConfig"> {
  const { model } = settings;
  if (model === undefined) return {};
  const cwd = workspaceOf(text);
  const fallbackConfig = sessionConfig(settings, {
    model,
    ...(cwd === undefined ? {} : { cwd }),
  });
  return { fallbackConfig, ...(asked ? { config: { request: fallbackConfig.request } } : {}) };
}

function workspaceOf(text: string): string | undefined {
  try {
    const header: unknown = JSON.parse(text.slice(0, text.indexOf("\n")));
    const cwd: unknown =
      typeof header === "object" && header !== null ? Reflect.get(header, "cwd") : undefined;
    return typeof cwd === "string" ? cwd : undefined;
  } catch {
    // Whoever reads the log says what is wrong with it.
    return undefined;
  }
}

type LogFile = Pick<LogZip, "text"> & Partial<LogZip>;

async function readLog(path: string): Promise<LogFile> {
  try {
    if (await isZip(path)) return await openLogZip(path);
    return { text: await readFile(path, "utf8") };
  } catch (error) {
    if (error instanceof LonghaulError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new LonghaulError("INVALID_INPUT", `cannot read ${path}: ${reason}`, { cause: error });
  }
}

async function isZip(path: string): Promise<boolean> {
  await using file = await open(path, "r");
  const { bytesRead, buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
  return bytesRead === 4 && buffer.toString("latin1") === "PK\u0003\u0004";
}

async function keepStreams(file: LogFile, { store }: Backend, session: string): Promise<void> {
  if (file.streams === undefined) return;
  for await (const { stream, pieces } of file.streams()) {
    let offset = 0;
    for await (const piece of pieces) offset = await store.append(session, stream, offset, piece);
  }
}
