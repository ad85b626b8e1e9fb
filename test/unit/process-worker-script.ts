// Runs one command as a worker process would: `node <this, compiled> <home> <session> <claim> <cwd> <command>`.
import { join } from "node:path";

import { openClaim } from "../../src/process/claim.js";
import { runCommand } from "../../src/process/run-command.js";
import { openDirectoryStore } from "../../src/store/directory.js";

const [home = "", sessionId = "", claim = "", cwd = "", command = ""] = process.argv.slice(2);
const marks = { home, sessionId, claim };
const opened = await openClaim(marks);
if (opened.kind !== "new") throw new Error(`the claim is ${opened.kind}`);
const result = await runCommand({
  command,
  cwd,
  marks,
  directory: opened.claim.directory,
  store: await openDirectoryStore(join(home, "store")),
  signal: new AbortController().signal,
});
process.stdout.write(
  `${JSON.stringify({ exitCode: result.exitCode, signal: result.signal, endedBy: result.endedBy })}\n`,
);
