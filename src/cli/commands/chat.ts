import { modelName, sessionConfig, type Settings } from "../../config.js";
import type { Backend, Session } from "../backend.js";
import { chat } from "../chat/chat.js";
import { plainChat } from "../chat/plain.js";
import { command, homeOption, type Context } from "../command.js";
import type { Io } from "../io.js";
import { progress } from "../progress.js";
import { modelOf, sessionIdOf, settingsOf } from "./settings.js";
import { withWorker } from "./with-worker.js";
import { checkModelOf, toolsOption, workerParts } from "./worker-parts.js";

export const chatCommand = command({
  name: "chat",
  summary: "Talk with a session, a new one or one that is there",
  words: "[session]",
  maxWords: 1,
  options: {
    model: {
      type: "string",
      value: "model",
      help: "of a new session: provider/model, or scripted:<file> (default LONGHAUL_MODEL, else config.yaml)",
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
    "A new session works in this directory. Leaving (Ctrl-C when nothing runs, /quit) does not end a session.",
    "Without a terminal each line of stdin is a message, and the transcript goes to stdout.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const settings = settingsOf(context, options);
    const id = words.length === 0 ? undefined : sessionIdOf(words, "chat");
    const model = id === undefined ? modelOf(settings) : undefined;
    const request = await workerParts(context, settings, options.tools);
    const backend = await context.backend({
      home: settings.home,
      register: true,
      report: progress(io),
    });
    const open = () =>
      model === undefined
        ? existing(backend, id ?? "")
        : backend.createSession({
            config: sessionConfig(settings, { model, cwd: io.cwd }),
            host: settings.hostId,
          });
    const own = {
      request,
      needed: options.tools !== undefined,
      check: async () => {
        if (model !== undefined) await checkModelOf(context, settings, model);
      },
    };
    const { value: session, ownWorker, lost } = await withWorker(context, backend, own, open);
    return talk(context, { backend, settings, session, ownWorker, lost, home: options.home });
  },
});

async function existing(backend: Backend, id: string): Promise<Session> {
  const session = backend.session(id);
  await session.view();
  return session;
}

export interface Talk {
  readonly backend: Backend;
  readonly settings: Settings;
  readonly session: Session;
  /** The worker ends with this process. */
  readonly ownWorker: boolean;
  readonly lost: Promise<never>;
  /** `--home` as it was given. */
  readonly home: string | undefined;
}

/** Talks with a session in the way the terminal allows. */
export async function talk(context: Context, options: Talk): Promise<number> {
  const { io } = context;
  const { backend, session, settings, lost } = options;
  if (!isInteractive(io)) return plainChat(io, session, lost);
  const { config } = await context.orStop(session.view());
  const url = backend.sessionUrl(session.id);
  const head = [
    `Session    ${session.id}`,
    `Model      ${modelName(config.request)}`,
    ...(config.cwd === undefined ? [] : [`Workspace  ${config.cwd}`]),
    ...(url === undefined ? [] : [`Temporal   ${url}`]),
    "",
  ];
  const back = `${commandName(io)} chat ${session.id}${options.home === undefined ? "" : ` --home ${settings.home}`}`;
  const farewell = [
    `The session stays${options.ownWorker ? ", and goes on while a worker runs (longhaul worker)" : ""}. To come back:`,
    `  ${back}`,
  ];
  return chat(io, { session, home: settings.home, head, farewell, lost });
}

/** May lines be rewritten and keys be read one by one? */
export function isInteractive(io: Io): boolean {
  return io.stdin.isTTY === true && io.stdout.isTTY === true && io.env["TERM"] !== "dumb";
}

/** How the user calls this program. */
export function commandName(io: Io): string {
  return io.env["npm_lifecycle_event"] === undefined ? "longhaul" : "npx longhaul";
}
