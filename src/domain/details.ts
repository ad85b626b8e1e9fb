import type { TodoItem } from "../contracts/todo.js";
import type { ScheduleRecord } from "../contracts/schedule.js";
import { isLive, type JobRecord } from "./jobs.js";
import { nextReminder } from "./schedule-views.js";
import type { Session } from "./session.js";
import type { TurnState } from "./turn-state.js";

/** What the session is doing, as Markdown for Temporal UI's current details (design D13). Costs no history. */
export function currentDetails(
  session: Session,
  doing: string | undefined,
  localTime: LocalTimeText = () => undefined,
): string {
  const { turn, place, inbox, todo } = session.folds;
  const parts = [`**${session.state()}**${doing === undefined ? "" : ` · ${oneLine(doing)}`}`];
  if (turn.number > 0) {
    parts.push(turn.open ? `Turn ${turn.number}, step ${turn.step}` : endOf(turn));
  }
  const [turns, steps] = [inbox.nextTurn.length, inbox.nextStep.length];
  if (turns + steps > 0)
    parts.push(`Inbox: ${turns} for the next turn, ${steps} for the next step`);
  if (place.host !== undefined) {
    parts.push(`Host: \`${place.host}\`${place.cold ? " (does not answer)" : ""}`);
  }
  if (session.fault !== undefined) parts.push(`Fault: ${oneLine(session.fault.message, 500)}`);
  if (session.stays !== undefined)
    parts.push(`Does not go on in a new run: ${oneLine(session.stays, 500)}`);
  if (todo.todos !== null && todo.todos.length > 0) {
    parts.push("### Todo", todo.todos.map(todoLine).join("\n"));
  }
  const { schedule } = session.folds;
  const next = nextReminder(schedule);
  if (next !== undefined) parts.push(`Next reminder: ${reminderLine(next, localTime)}`);
  if (schedule.fault !== undefined) parts.push(`Reminders: ${oneLine(schedule.fault, 500)}`);
  const jobs = session.folds.jobs.jobs.filter(isLive);
  if (jobs.length > 0) parts.push("### Jobs", jobs.slice(0, 20).map(jobLine).join("\n"));
  // Markdown joins lines that no empty one keeps apart.
  return parts.join("\n\n");
}

/** What a run's own static summary and details say; a run that goes on from another one has none (facts §0.31). */
export function detailsHeading({ config }: Session, title: string | undefined): string {
  const { provider, model } = config.request;
  const facts = [
    `\`${provider}/${model}\``,
    ...(config.cwd === undefined ? [] : [`\`${config.cwd}\``]),
  ];
  return [...(title === undefined ? [] : [`## ${oneLine(title, 200)}`]), facts.join(" · ")].join(
    "\n\n",
  );
}

function endOf({ number, lastEnd }: TurnState): string {
  const reason = lastEnd?.reason;
  const cause =
    reason?.kind === "error" ? ` (${reason.code}: ${oneLine(reason.message, 500)})` : "";
  return `Turn ${number} ended: ${reason?.kind ?? "unknown"}${cause}`;
}

const marks: { readonly [status in TodoItem["status"]]: string } = {
  pending: "☐",
  in_progress: "▸",
  completed: "☑",
};

function todoLine(item: TodoItem): string {
  const text = oneLine(item.content, 200);
  return `- ${marks[item.status]} ${item.status === "in_progress" ? `**${text}**` : text}`;
}

/** An instant as a person reads it where the session is used; undefined when that is not known. */
export type LocalTimeText = (instant: string) => string | undefined;

function reminderLine(
  { id, scheduledAt, prompt }: ScheduleRecord,
  localTime: LocalTimeText,
): string {
  const local = localTime(scheduledAt);
  const when = local === undefined ? scheduledAt : `${local} (${scheduledAt})`;
  return `\`${id}\` ${when} — ${oneLine(prompt, 200)}`;
}

function jobLine({ id, status, detail, label }: JobRecord): string {
  const state = detail === undefined ? status : `${status}, ${oneLine(detail, 100)}`;
  return `- \`${id}\` ${state} — ${oneLine(label, 120)}`;
}

/** One line for an activity's summary; Temporal keeps 200 bytes readable. */
export function oneLine(text: string, limit = 120): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  if (flat.length <= limit) return flat;
  // Half a surrogate pair would show as a replacement character.
  const splits = (flat.charCodeAt(limit - 2) & 0xfc00) === 0xd800;
  return `${flat.slice(0, splits ? limit - 2 : limit - 1)}…`;
}
