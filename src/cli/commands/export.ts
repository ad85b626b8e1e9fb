import { resolve } from "node:path";
import { command, homeOption } from "../command.js";
import { zipOf } from "../log-zip.js";
import { writeOutputFile } from "../output-file.js";
import { usage } from "../parse.js";
import { progress } from "../progress.js";
import { sessionIdOf, settingsOf } from "./settings.js";

export const exportCommand = command({
  name: "export",
  summary: "Write a session's whole log as JSON lines, or a zip with its outputs",
  words: "<session>",
  minWords: 1,
  options: {
    output: {
      type: "string",
      value: "file",
      short: "o",
      help: "write this file instead of stdout; it is there whole or not at all",
    },
    zip: { type: "boolean", help: "a zip: the log, and all the session has put into the store" },
    force: { type: "boolean", help: "replace the file when it is there" },
    ...homeOption,
  },
  details: ["longhaul import reads both; the log also loads in the reference harness."],
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "export");
    const { output, zip = false, force = false } = options;
    if (output === undefined && (zip || force))
      throw usage(`export --${zip ? "zip" : "force"} needs -o <file>`, "longhaul export --help");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const lines = backend.export(id);
    if (output === undefined) {
      const writing = (async () => {
        for await (const line of lines) io.stdout.write(line);
      })();
      await context.orStop(writing);
      return 0;
    }
    const path = resolve(io.cwd, output);
    const pieces = zip ? zipOf(lines, backend.store, id) : lines;
    await context.orStop(writeOutputFile(path, force, pieces));
    progress(io)(`exported ${id} to ${path}`);
    return 0;
  },
});
