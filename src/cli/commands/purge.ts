import type { PurgeResult } from "../../client/types.js";
import { command, homeOption, jsonOption } from "../command.js";
import { confirm } from "../confirm.js";
import type { Output } from "../io.js";
import { usage } from "../parse.js";
import { sessionIdOf, settingsOf } from "./settings.js";

export const purgeCommand = command({
  name: "purge",
  summary: "Remove all that is kept of an ended session, for good",
  words: "<session>",
  minWords: 1,
  options: {
    yes: { type: "boolean", short: "y", help: "remove it without asking" },
    ...jsonOption,
    ...homeOption,
  },
  details: [
    "Its archive and outputs in the store, and the histories of its runs and of its jobs in Temporal. Nothing brings them",
    "back. Refused while the session or one of its jobs runs; files in its workspace stay. Without a terminal it needs --yes.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "purge");
    const out = options.json === true ? io.stderr : io.stdout;
    if (options.yes !== true) {
      if (io.stdin.isTTY !== true || out.isTTY !== true)
        throw usage("purge asks first and has no terminal to ask on; say --yes to remove it");
      if (!(await context.orStop(confirm(io, out, `Remove all of session ${id} for good?`)))) {
        out.write("nothing was removed\n");
        return 1;
      }
    }
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const removed = await context.orStop(backend.purge(id, { onWait: tellOnce(io.stderr) }));
    io.stdout.write(
      options.json === true ? `${JSON.stringify(removed, undefined, 2)}\n` : `${textOf(removed)}\n`,
    );
    return 0;
  },
});

/** Temporal takes a minute or two for what has just ended. */
function tellOnce(out: Output): (histories: number) => void {
  const since = Date.now();
  let told = false;
  return (histories) => {
    if (told || Date.now() - since < tellAfterMs) return;
    told = true;
    out.write(
      `waiting for Temporal to delete ${histories} histor${histories === 1 ? "y" : "ies"}; it takes some minutes for what has just ended\n`,
    );
  };
}

const tellAfterMs = 3_000;

function textOf({ session, runs, jobs, streams, bytes }: PurgeResult): string {
  return `purged ${session}: ${count(runs, "run")} and ${count(jobs, "job")} in Temporal, ${count(streams, "stream")} with ${bytes} bytes in the store`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
