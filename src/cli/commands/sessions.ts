import type { SessionSummary } from "../../client/types.js";
import { sessionStates } from "../../contracts/names.js";
import { command, homeOption, jsonOption } from "../command.js";
import { usage } from "../parse.js";
import { oneLine } from "../render/clean.js";
import { tableLines } from "../render/table.js";
import { terminalOf } from "../render/terminal.js";
import { suggest } from "../suggest.js";
import { listArchived } from "./archived.js";
import { minuteOf, secondOf } from "./reading.js";
import { settingsOf, wholeNumber } from "./settings.js";

const states: readonly SessionSummary["state"][] = [
  ...sessionStates,
  "terminated",
  "failed",
  "unknown",
];

export const sessionsCommand = command({
  name: "sessions",
  summary: "List sessions, newest first",
  options: {
    state: { type: "string", value: "state", help: "only sessions in this state" },
    overdue: {
      type: "boolean",
      help: "only open sessions with a reminder that is due and not delivered",
    },
    archived: {
      type: "boolean",
      help: "ended sessions in the archive, also those that Temporal has deleted, the last first",
    },
    limit: { type: "string", value: "n", help: "at most n sessions (default 1000)" },
    ...jsonOption,
    ...homeOption,
  },
  details: [`States: ${states.join(", ")}.`],
  async run(context, _words, options) {
    const { io } = context;
    const state = options.state === undefined ? undefined : stateOf(options.state);
    const limit = options.limit === undefined ? 1000 : wholeNumber(options.limit, "--limit");
    if (limit < 1) throw usage(`--limit expected a number from 1, got ${limit}`);
    if (options.archived === true && (state !== undefined || options.overdue === true))
      throw usage("--archived goes with neither --state nor --overdue");
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    if (options.archived === true)
      return await listArchived(context, backend, limit, options.json === true);
    // One more than is shown tells whether there are more.
    const found = await context.orStop(
      backend.list({
        limit: limit + 1,
        ...(state === undefined ? {} : { state }),
        ...(options.overdue === true ? { overdue: true } : {}),
      }),
    );
    const list = found.slice(0, limit);
    if (found.length > limit) io.stderr.write(`${limit} shown, more with --limit N\n`);
    if (options.json === true) {
      io.stdout.write(`${JSON.stringify(list.map(jsonOf), undefined, 2)}\n`);
      return 0;
    }
    if (list.length === 0) {
      const which = options.overdue === true ? "no sessions with overdue reminders" : "no sessions";
      io.stdout.write(state === undefined ? `${which}\n` : `${which} in state ${state}\n`);
      return 0;
    }
    const terminal = terminalOf(io.stdout, io.env);
    const remind = list.some(({ nextReminder }) => nextReminder !== undefined);
    const rows = list.map((one) =>
      [
        one.id,
        one.state,
        one.host ?? "-",
        minuteOf(one.startedAt),
        ...(remind ? [one.nextReminder === undefined ? "-" : secondOf(one.nextReminder)] : []),
        one.title ?? "",
      ].map(oneLine),
    );
    const next = remind ? ["NEXT REMINDER"] : [];
    const head = ["SESSION", "STATE", "HOST", "STARTED", ...next, "TITLE"];
    for (const line of tableLines([head, ...rows], io.stdout.isTTY === true, terminal))
      io.stdout.write(`${line}\n`);
    return 0;
  },
});

/** `nextReminder` as the reminders have it. */
function jsonOf({ nextReminder, ...summary }: SessionSummary): object {
  return nextReminder === undefined
    ? summary
    : { ...summary, nextReminder: new Date(nextReminder).toISOString() };
}

function stateOf(text: string): SessionSummary["state"] {
  const found = states.find((state) => state === text);
  if (found !== undefined) return found;
  const near = suggest(text, states);
  throw usage(
    `--state expected one of ${states.join(", ")}, got ${JSON.stringify(text)}${near === undefined ? "" : `; did you mean "${near}"?`}`,
  );
}
