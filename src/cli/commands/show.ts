import type { SessionView } from "../../contracts/session.js";
import { modelName } from "../../config.js";
import { command, homeOption, jsonOption } from "../command.js";
import { oneLine } from "../render/clean.js";
import { pad, styled, terminalOf, type Terminal } from "../render/terminal.js";
import { todoLines } from "../render/todos.js";
import { wholeLine } from "../render/wrap.js";
import { sessionIdOf, settingsOf } from "./settings.js";

export const showCommand = command({
  name: "show",
  summary: "Show what a session is and does",
  words: "<session>",
  minWords: 1,
  options: { ...jsonOption, ...homeOption },
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "show");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const view = await context.orStop(backend.session(id).view());
    const url = backend.sessionUrl(id);
    if (options.json === true) {
      io.stdout.write(
        `${JSON.stringify({ ...view, ...(url === undefined ? {} : { temporalUi: url }) }, undefined, 2)}\n`,
      );
      return 0;
    }
    const terminal = terminalOf(io.stdout, io.env);
    for (const line of viewLines(view, url, terminal)) io.stdout.write(`${line}\n`);
    return 0;
  },
});

/** The overview of a session, wrapped on a terminal but for addresses. */
export function viewLines(
  view: SessionView,
  url: string | undefined,
  terminal: Terminal,
): readonly string[] {
  const { config, turn, inbox } = view;
  const waiting = inbox.nextTurn.length + inbox.nextStep.length;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["Session", view.id],
    ["Title", view.title],
    ["State", view.ready ? view.state : `${view.state} (its tools are not known yet)`],
    ["Model", modelName(config.request)],
    ["Host", view.host],
    ["Workspace", config.cwd],
    ["Turn", turnText(view)],
    ["Waiting", waiting === 0 ? undefined : `${waiting} message${waiting === 1 ? "" : "s"}`],
    ["Log", `${view.lastSeq + 1} entries`],
  ];
  const lines = facts.flatMap(([name, value]) =>
    value === undefined
      ? []
      : wholeLine(oneLine(value), terminal, 11).map((row, index) =>
          index === 0 ? styled(terminal, "bold", pad(name, 11)) + row : " ".repeat(11) + row,
        ),
  );
  if (url !== undefined) lines.push(styled(terminal, "bold", pad("Temporal", 11)) + url);
  const todos = view.todos ?? [];
  return todos.length === 0 ? lines : [...lines, "", ...todoLines(todos, terminal)];

  function turnText({ lastEnd }: SessionView): string {
    if (turn.number === 0) return "none yet";
    if (turn.open) return `${turn.number}, step ${turn.step}, running`;
    if (lastEnd === undefined) return String(turn.number);
    const why = [lastEnd.code, lastEnd.message].filter((part) => part !== undefined).join(": ");
    return `${turn.number}, ended ${lastEnd.kind}${why === "" ? "" : ` (${why})`}`;
  }
}
