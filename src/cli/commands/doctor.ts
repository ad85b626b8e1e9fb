import { command, homeOption, jsonOption } from "../command.js";
import { examine } from "../doctor/examine.js";
import { checkLines } from "../doctor/lines.js";
import { terminalOf } from "../render/terminal.js";

export const doctorCommand = command({
  name: "doctor",
  summary: "Look at all that sessions need, and say how to cure what is missing",
  options: {
    model: { type: "boolean", help: "also make one tiny real call to the configured model" },
    ...jsonOption,
    ...homeOption,
  },
  details: [
    "Each line: ok, warn (it works, with something missing) or fail. Starts no server and no worker.",
    "Exit code 0 when nothing failed, else 1.",
  ],
  async run(context, _words, { model, json, home }) {
    const { io } = context;
    const checks = await context.orStop(
      examine(context, { callModel: model === true, ...(home === undefined ? {} : { home }) }),
    );
    const failed = checks.some((check) => check.status === "fail");
    io.stdout.write(
      json === true
        ? `${JSON.stringify({ ok: !failed, checks }, undefined, 2)}\n`
        : checkLines(checks, terminalOf(io.stdout, io.env)),
    );
    return failed ? 1 : 0;
  },
});
