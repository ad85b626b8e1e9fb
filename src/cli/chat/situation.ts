import type { WatchEvent } from "../../client/types.js";
import type { UserMessage } from "../../contracts/content.js";
import type { EntryOf, InboxTarget, LogEntry } from "../../contracts/log.js";

/** A message that the session has and no request has taken yet. */
export interface WaitingMessage {
  readonly id: string;
  readonly text: string;
  readonly target: InboxTarget;
}

/** What a session is doing, as far as its events say. Pure. */
export class Situation {
  /** Last entry. */
  seq = -1;
  /** A turn is open. */
  running = false;
  closed = false;
  thinking = false;
  /** Why nothing comes, while the session does not answer. */
  away: string | undefined;
  /** The todo list as it was last written. */
  todos: EntryOf<"todo/write">["data"]["todos"] = [];
  readonly #inbox: Record<InboxTarget, readonly UserMessage[]> = {
    "next-step": [],
    "next-turn": [],
  };

  /** Messages of users, in the order they will be taken. */
  get waiting(): readonly WaitingMessage[] {
    return (["next-step", "next-turn"] as const).flatMap((target) =>
      this.#inbox[target]
        .filter((message) => message.source.kind === "user")
        .map((message) => ({ id: message.id, text: textOf(message), target })),
    );
  }

  event(event: WatchEvent): void {
    switch (event.type) {
      case "entry":
        return this.#entry(event.entry);
      case "delta":
        this.thinking = event.kind === "reasoning";
        return;
      case "connection":
        this.away = event.up ? undefined : event.message;
        return;
      case "state":
        if (event.state === "closed") this.closed = true;
        return;
      case "restart":
      case "session/jobs":
        return;
    }
  }

  #entry(entry: LogEntry): void {
    this.seq = entry.seq;
    this.thinking = false;
    switch (entry.type) {
      case "turn/start":
        this.running = true;
        return;
      case "turn/end":
        this.running = false;
        return;
      case "session/close":
        this.closed = true;
        return;
      case "todo/write":
        this.todos = entry.data.todos;
        return;
      case "agent/inbox/spliced": {
        const { target, start, removedCount = 0, inserted } = entry.data;
        this.#inbox[target] = this.#inbox[target].toSpliced(start, removedCount, ...inserted);
        return;
      }
      default:
        return;
    }
  }
}

function textOf(message: UserMessage): string {
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
}
