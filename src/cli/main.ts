#!/usr/bin/env node
import { commands } from "./commands/index.js";
import { currentDirectory } from "./current-directory.js";
import { failureJson, failureText } from "./failure.js";
import { Interrupts } from "./interrupts.js";
import { stops, type Io } from "./io.js";
import { watchOutputs } from "./outputs.js";
import { packageVersion } from "./package.js";
import { asksForJson, runCli } from "./run.js";

const interrupts = new Interrupts({
  exit: (exitCode) => process.exit(exitCode),
  write: (text) => void process.stderr.write(text),
});

process.on("SIGINT", () => interrupts.stop(stops.SIGINT));
process.on("SIGTERM", () => interrupts.stop(stops.SIGTERM));
// A terminal that was closed: what can be put away is.
process.on("SIGHUP", () => interrupts.stop(stops.SIGTERM));

const argv = process.argv.slice(2);
const writeError = process.stderr.write.bind(process.stderr);
const outputs = watchOutputs(process, {
  stop: (reason) => interrupts.stop(reason),
  tell: (error) => void writeError((asksForJson(argv) ? failureJson : failureText)(error, false)),
});
const io: Io = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  get cwd() {
    return currentDirectory(() => process.cwd());
  },
  stop: interrupts.signal,
  onForcedExit: (remains) => interrupts.onForcedExit(remains),
  divertErrors(sink) {
    if (sink === undefined) process.stderr.write = writeError;
    else {
      process.stderr.write = (text: string | Uint8Array) => {
        sink(typeof text === "string" ? text : Buffer.from(text).toString("utf8"));
        return true;
      };
    }
  },
};

const code = await runCli(argv, io, {
  commands,
  version: packageVersion,
  openBackend: async (request, from) =>
    (await import("./open-backend.js")).openBackend(request, from),
});
// Connections that were closed may keep the process for a moment; what was written goes out first.
await Promise.all(
  [process.stdout, process.stderr].map(
    (output) => new Promise((done) => output.write("", () => done(undefined))),
  ),
);
process.exit(outputs.failed ? 1 : code);
