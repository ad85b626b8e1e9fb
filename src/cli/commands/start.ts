import { stat } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { basename, join, resolve } from "node:path";
import { sessionConfig } from "../../config.js";
import { makeDirectory } from "../../store/make-directory.js";
import type { Session } from "../backend.js";
import { command, homeOption, type Context } from "../command.js";
import { aborted } from "../io.js";
import { packaged } from "../package.js";
import { usage } from "../parse.js";
import { progress } from "../progress.js";
import { oneLine } from "../render/clean.js";
import { styled, terminalOf } from "../render/terminal.js";
import { Transcript } from "../render/transcript.js";
import { commandName, isInteractive, talk } from "./chat.js";
import { follow } from "./follow.js";
import { settingsOf } from "./settings.js";
import { failureOf } from "./with-worker.js";
import { checkModelOf, toolsOption, workerParts } from "./worker-parts.js";

const firstMessage = "Work out how long sunlight travels to each planet, and write it down.";

export const startCommand = command({
  name: "start",
  summary: "Start everything here; chat with the model, or play a first session",
  options: {
    scenario: {
      type: "string",
      value: "file",
      help: "what the scripted model plays (default: the shipped first session)",
    },
    message: { type: "string", value: "text", help: "the user's message that opens it" },
    keep: { type: "boolean", help: "leave the Temporal server running at the end" },
    "host-id": {
      type: "string",
      value: "id",
      help: "this machine's name as a host (default: made once and kept)",
    },
    ...toolsOption,
    ...homeOption,
  },
  details: [
    "A Temporal server and a worker come up in this process, and a session works in a fresh directory under",
    "<home>/workspaces. On a terminal, with a model configured (LONGHAUL_MODEL, or model in config.yaml), it is a",
    "chat. Else a scripted session is played; on a terminal it then stays up for the other commands until Ctrl-C.",
  ],
  async run(context, _words, options) {
    const { io } = context;
    const scenario = await scenarioFile(context, options.scenario);
    const settings = settingsOf(context, options);
    const terminal = terminalOf(io.stdout, io.env);
    const say = (line: string) => io.stdout.write(`${styled(terminal, "dim", line)}\n`);
    const asked = options.scenario !== undefined || options.message !== undefined;
    const model = asked || !isInteractive(io) ? undefined : settings.model;
    if (model !== undefined) await checkModelOf(context, settings, model);
    const request = await workerParts(context, settings, options.tools);
    const backend = await context.backend({
      home: settings.home,
      register: true,
      keep: options.keep === true,
      // A chat owns the screen; what goes to stderr it shows in its place.
      report: model === undefined ? (line) => say(oneLine(line)) : progress(io),
    });
    const starting = backend.startWorker(request);
    const ended = failureOf(starting);
    await context.orStop(starting);

    const id = sessionId(Date.now());
    const workspace = join(settings.home, "workspaces", id);
    makeDirectory(workspace);
    const config = sessionConfig(settings, {
      model: model ?? { provider: "scripted", model: scenario },
      cwd: workspace,
    });
    const opening = backend.createSession({
      id,
      config,
      host: settings.hostId,
      ...(model === undefined ? { title: await titleOf(options.scenario, scenario) } : {}),
    });
    const session = await context.orStop(Promise.race([opening, ended]));
    if (model !== undefined) {
      const { home } = options;
      return talk(context, { backend, settings, session, ownWorker: true, lost: ended, home });
    }

    const transcript = new Transcript((text) => io.stdout.write(text), terminal);
    const following = follow(session, (event) => transcript.event(event));
    try {
      const completed = await context.orStop(
        Promise.race([play(session, options.message ?? firstMessage, following), ended]),
      );
      transcript.end();
      const url = backend.sessionUrl(id);
      io.stdout.write(`\nSession    ${id}\nWorkspace  ${workspace}\n`);
      if (url !== undefined) io.stdout.write(`Temporal   ${url}\n`);
      const longhaul = commandName(io);
      const home = options.home === undefined ? "" : ` --home ${settings.home}`;
      if (io.stdout.isTTY !== true) {
        if (url !== undefined && options.keep !== true)
          say(
            `           (the page is there while a server runs: ${longhaul} server start${home})`,
          );
        return completed ? 0 : 1;
      }
      say(`\nIt stays up until Ctrl-C. In another terminal, for example:`);
      for (const words of ["sessions", `log ${id} --follow`, `show ${id}`])
        say(`  ${longhaul} ${words}${home}`);
      await Promise.race([aborted(io.stop), ended]);
      say("stopping");
      return 0;
    } finally {
      await following.stop();
      transcript.end();
    }
  },
});

/** Plays the session to the end of its work; true when that completed. */
async function play(
  session: Session,
  message: string,
  following: ReturnType<typeof follow>,
): Promise<boolean> {
  const { seq } = await session.send(message);
  const { lastSeq } = await session.waitIdle({ after: seq });
  const outcome = await session.outcome();
  await following.reached(lastSeq);
  return outcome.kind === "completed";
}

async function scenarioFile({ io }: Context, given: string | undefined): Promise<string> {
  const path =
    given === undefined ? packaged("examples/first-session.yaml") : resolve(io.cwd, given);
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() === true) return path;
  throw usage(`--scenario expected a file, got ${path}, which is not one`, "longhaul start --help");
}

/** What the session is called: as its scenario, or the scenario's file where that has a mistake the session will tell. */
async function titleOf(given: string | undefined, file: string): Promise<string> {
  if (given === undefined) return "First session";
  const { createScenarioLoader } = await import("../../models/scenario-file.js");
  try {
    return createScenarioLoader()(file).name;
  } catch {
    return basename(file);
  }
}

/** `s-<time>-<random>`, sortable by time. */
function sessionId(now: number): string {
  return `s-${now.toString(36)}-${randomBytes(4).toString("hex")}`;
}
