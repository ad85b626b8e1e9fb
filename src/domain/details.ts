import type { TodoItem } from "../contracts/todo.js";
import type { Session } from "./session.js";

/** What the session is doing, as Markdown for Temporal UI's current details (design D13). Costs no history. */
export function currentDetails(session: Session, doing: string | undefined): string {
  const { turn, place, inbox, todo } = session.folds;
  const lines = [`**${session.state()}**${doing === undefined ? "" : ` · ${doing}`}`, ""];
  if (turn.number > 0) {
    const end = turn.lastEnd;
    lines.push(
      turn.open
        ? `Turn ${turn.number}, step ${turn.step}`
        : `Turn ${turn.number} ended: ${end?.reason.kind ?? "unknown"}${
            end?.reason.kind === "error" ? ` (${end.reason.code}: ${end.reason.message})` : ""
          }`,
    );
  }
  const waiting = inbox.nextTurn.length + inbox.nextStep.length;
  if (waiting > 0) lines.push(`Inbox: ${inbox.nextTurn.length} for the next turn, ${inbox.nextStep.length} for the next step`);
  if (place.host !== undefined) lines.push(`Host: \`${place.host}\`${place.live ? "" : " (does not answer)"}`);
  if (session.fault !== undefined) lines.push(`Fault: ${session.fault.message}`);
  if (todo.todos !== null && todo.todos.length > 0) lines.push("", "### Todo", ...todo.todos.map(todoLine));
  return lines.join("\n");
}

const marks: { readonly [status in TodoItem["status"]]: string } = {
  pending: "☐",
  in_progress: "▸",
  completed: "☑",
};

function todoLine(item: TodoItem): string {
  const text = item.content.replaceAll("\n", " ").slice(0, 200);
  return `- ${marks[item.status]} ${item.status === "in_progress" ? `**${text}**` : text}`;
}

/** One line for an activity's summary; Temporal keeps 200 bytes readable. */
export function oneLine(text: string, limit = 120): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return flat.length <= limit ? flat : `${flat.slice(0, limit - 1)}…`;
}
