import type { Outcome } from "../../client/types.js";
import { sessionConfig } from "../../config.js";
import { command, homeOption } from "../command.js";
import { stopOf } from "../io.js";
import { usage } from "../parse.js";
import { progress } from "../progress.js";
import { clean, oneLine } from "../render/clean.js";
import { modelOf, settingsOf } from "./settings.js";
import { withWorker } from "./with-worker.js";
import { checkModelOf, toolsOption, workerParts } from "./worker-parts.js";

export const runCommand = command({
  name: "run",
  summary: "Do one task in this directory and print the answer",
  words: "task words ...",
  minWords: 0,
  maxWords: Infinity,
  options: {
    model: {
      type: "string",
      value: "model",
      help: "provider/model, or scripted:<file> (default LONGHAUL_MODEL, else config.yaml)",
    },
    "host-id": {
      type: "string",
      value: "id",
      help: "the host whose workspace this is (default: this machine)",
    },
    ...toolsOption,
    ...homeOption,
  },
  details: [
    "One fresh session works in this directory on one message; its last text goes to stdout.",
    "Exit code 0 when its last turn completed, else 1; an error is one line on stderr.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const task = words.join(" ").trim();
    if (task === "") throw usage("run expected a task, got a blank one", "longhaul run --help");
    const settings = settingsOf(context, options);
    const model = modelOf(settings);
    const request = await workerParts(context, settings, options.tools);
    const backend = await context.backend({
      home: settings.home,
      register: true,
      report: progress(io),
    });
    const config = sessionConfig(settings, { model, cwd: io.cwd });
    const open = () => backend.createSession({ config, host: settings.hostId });
    const { value: session, lost } = await withWorker(
      context,
      backend,
      {
        request,
        needed: options.tools !== undefined,
        check: () => checkModelOf(context, settings, model),
      },
      open,
    );
    const sent = await context.orStop(session.send(task));
    const idle = session.waitIdle({ after: sent.seq, signal: io.stop }).catch((error: unknown) => {
      if (!io.stop.aborted) throw error;
    });
    await Promise.race([idle, lost]);
    if (io.stop.aborted) {
      // The user ends the command, so the work is to end too; a session that cannot be told keeps its log.
      await session.interrupt().catch(() => undefined);
      return stopOf(io.stop).exitCode;
    }
    const result = outcomeText(await context.orStop(session.outcome({ after: sent.seq - 1 })));
    io.stdout.write(result.stdout);
    io.stderr.write(result.stderr);
    return result.exitCode;
  },
});

export interface RunResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

/** What a headless run prints and exits with (spec/harness §10, E1 to E5); without a text nothing goes to stdout. */
export function outcomeText(outcome: Outcome): RunResult {
  const text = clean(outcome.text ?? "");
  const stdout = text === "" ? "" : `${text}\n`;
  if (outcome.kind === "completed") return { stdout, stderr: "", exitCode: 0 };
  const what =
    outcome.kind === "error"
      ? `${outcome.code ?? "MODEL_ERROR"}: ${outcome.message ?? "no message"}`
      : (endings[outcome.kind] ?? outcome.kind);
  const more =
    outcome.kind === "blocked" && outcome.message !== undefined ? `: ${outcome.message}` : "";
  return { stdout, stderr: `error: ${oneLine(what + more)}\n`, exitCode: 1 };
}

const endings: Readonly<Record<string, string>> = {
  aborted: "the turn was aborted",
  blocked: "the turn was blocked",
  "max-tokens": "the turn stopped at the token limit",
  interrupted: "the turn was cut off",
  none: "no turn ran",
};
