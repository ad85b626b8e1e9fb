import type { ScheduleView } from "../../contracts/schedule.js";
import { localClock } from "../../time/local-text.js";
import { formatDuration } from "../../time/typed-duration.js";
import { machineZone } from "../../time/zones.js";
import { command, homeOption, jsonOption } from "../command.js";
import { confirm } from "../confirm.js";
import { ReminderRefused } from "../failure.js";
import { usage } from "../parse.js";
import { oneLine } from "../render/clean.js";
import { tableLines } from "../render/table.js";
import { terminalOf } from "../render/terminal.js";
import { readTimeoutMs, secondOf } from "./reading.js";
import { sessionIdOf, settingsOf } from "./settings.js";
import { instantText, whenOf, zoneOf } from "./when.js";

const zoneOption = {
  tz: {
    type: "string",
    value: "zone",
    help: "time zone, like Europe/Berlin (default: this machine's)",
  },
} as const;

export const remindAddCommand = command({
  name: "remind add",
  summary: "Set a reminder: the session gets a turn for it when it is due",
  words: '<session> "prompt"',
  minWords: 2,
  maxWords: Infinity,
  options: {
    in: { type: "string", value: "time", help: "once, after so long: 10m, 1h30m, 2 days, 45s" },
    at: {
      type: "string",
      value: "time",
      help: 'once, then: "tomorrow 9:00", "2026-12-01 09:00", "09:30", "fri 17:00", or ISO with offset',
    },
    every: { type: "string", value: "time", help: "again and again, each so long, at least 5m" },
    ...zoneOption,
    yes: { type: "boolean", short: "y", help: "set it without asking" },
    id: {
      type: "string",
      value: "id",
      help: "id of this request: the same id sets one reminder, so a repeat is safe",
    },
    ...jsonOption,
    ...homeOption,
  },
  details: [
    "The time is said back in UTC and in the zone it was read in before anything is sent; on a terminal it is asked",
    "whether that is meant. The session must have been made with reminders (schedule: true in config.yaml).",
  ],
  async run(context, words, options) {
    const { io } = context;
    const session = sessionIdOf(words, "remind add");
    const prompt = words.slice(1).join(" ");
    if (prompt.trim() === "")
      throw usage("remind add expected a prompt, got a blank one", "longhaul remind add --help");
    const when = whenOf(options, Date.now());
    // A program reads stdout.
    const out = options.json === true ? io.stderr : io.stdout;
    out.write(`${when.text}\n`);
    const asks = options.yes !== true && io.stdin.isTTY === true && out.isTTY === true;
    if (asks && !(await context.orStop(confirm(io, out, "Set this reminder?")))) {
      out.write("nothing was set\n");
      return 1;
    }
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const id = options.id === undefined ? {} : { id: options.id };
    const set = await context.orStop(
      backend.session(session).remind({ prompt, ...when.rule, ...id }),
    );
    if (!set.ok) throw new ReminderRefused(set);
    const { timeZone } = when;
    const local = localClock(Date.parse(set.scheduledAt), timeZone);
    const { ok: _, ...answer } = set;
    io.stdout.write(
      options.json === true
        ? `${JSON.stringify({ session, ...answer, local, timeZone }, undefined, 2)}\n`
        : `${set.id} is set for ${instantText(Date.parse(set.scheduledAt), timeZone)}\n`,
    );
    return 0;
  },
});

export const remindListCommand = command({
  name: "remind list",
  summary: "List a session's reminders",
  words: "<session>",
  minWords: 1,
  options: { ...zoneOption, ...jsonOption, ...homeOption },
  async run(context, words, options) {
    const { io } = context;
    const session = sessionIdOf(words, "remind list");
    const timeZone = options.tz === undefined ? (machineZone() ?? "UTC") : zoneOf(options.tz);
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const list = await context.orStop(
      backend.session(session).reminders({ timeoutMs: readTimeoutMs }),
    );
    if (!list.ok) throw new ReminderRefused(list);
    const { enabled, live, reminders } = list;
    if (options.json === true) {
      io.stdout.write(`${JSON.stringify({ session, enabled, live, reminders }, undefined, 2)}\n`);
      return 0;
    }
    if (reminders.length === 0) {
      io.stdout.write(
        enabled ? "no reminders\n" : "no reminders: the session was made without them\n",
      );
      return 0;
    }
    const head = ["REMINDER", "STATE", "DUE", `IN ${timeZone}`, "REPEATS", "PROMPT"];
    const rows = [head, ...reminders.map((one) => rowOf(one, timeZone))];
    for (const line of tableLines(rows, io.stdout.isTTY === true, terminalOf(io.stdout, io.env)))
      io.stdout.write(`${line}\n`);
    if (!live)
      io.stderr.write(
        `nothing is delivered now: the session is suspended or its host does not answer (longhaul show ${session})\n`,
      );
    return 0;
  },
});

export const remindDeleteCommand = command({
  name: "remind delete",
  summary: "Delete a reminder",
  words: "<session> <reminder>",
  minWords: 2,
  options: { ...jsonOption, ...homeOption },
  details: ["Exit code 1 when there is no such active reminder: it may have been delivered."],
  async run(context, words, options) {
    const { io } = context;
    const session = sessionIdOf(words, "remind delete");
    const reminder = words[1] ?? "";
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const answer = await context.orStop(backend.session(session).deleteReminder(reminder));
    if (!answer.ok) throw new ReminderRefused(answer);
    const { ok: _, ...facts } = answer;
    if (options.json === true)
      io.stdout.write(`${JSON.stringify({ session, ...facts }, undefined, 2)}\n`);
    else if (answer.deleted) io.stdout.write(`${answer.id} is deleted\n`);
    else
      io.stderr.write(
        oneLine(`error: ${answer.code}: session ${session} has no active reminder ${answer.id}`) +
          "\n",
      );
    return answer.deleted ? 0 : 1;
  },
});

function rowOf(one: ScheduleView, timeZone: string): readonly string[] {
  const due = Date.parse(one.scheduledAt);
  const repeats = one.kind === "every" ? `every ${formatDuration(one.everySeconds)}` : "once";
  return [one.id, one.state, secondOf(due), localClock(due, timeZone), repeats, one.prompt].map(
    oneLine,
  );
}
