import { suggest } from "../suggest.js";

export type Slash =
  | { readonly type: "help" | "todo" | "interrupt" | "cancel" | "compact" | "quit" }
  | { readonly type: "open"; readonly number: number | undefined }
  | { readonly type: "queue" | "message"; readonly text: string }
  /** Not carried out; why, in one line. */
  | { readonly type: "mistake"; readonly message: string };

/** What `/help` shows. */
export const chatHelp: readonly string[] = [
  "Enter sends; while a turn runs the message joins it at its next step.",
  "Alt+Enter, Ctrl-J or a backslash before Enter: another line. Up and Down: what was sent before.",
  "Ctrl-C interrupts the turn; again within two seconds, or when nothing runs, it leaves.",
  "",
  "/queue text   a message that gets a turn of its own, after this one",
  "/open [n]     the arguments and the output of tool call n; the last one without a number (Ctrl-O)",
  "/todo         the todo list",
  "/interrupt    end the turn; messages that wait stay",
  "/cancel       end the turn and drop the messages that wait",
  "/compact      let the model summarise the conversation so far, to make room",
  "/quit         leave; the session stays (also Ctrl-D)",
  "A message that begins with a slash: put a space before it.",
];

const known = ["/help", "/queue", "/open", "/todo", "/interrupt", "/cancel", "/compact", "/quit"];

/** Reads what was typed: a command when its first word is a slash and letters, else a message. */
export function parseSlash(text: string): Slash {
  const words = /^\/(?<name>[a-z]+)(?:\s+(?<rest>[\s\S]*))?$/i.exec(text.trimEnd())?.groups;
  const name = words?.["name"]?.toLowerCase();
  if (name === undefined) return { type: "message", text };
  const rest = words?.["rest"] ?? "";
  switch (name) {
    case "queue":
      return rest.trim() === ""
        ? { type: "mistake", message: "/queue expected a text after it" }
        : { type: "queue", text: rest };
    case "open":
      if (rest.trim() === "") return { type: "open", number: undefined };
      return /^\d{1,9}$/.test(rest.trim())
        ? { type: "open", number: Number(rest) }
        : { type: "mistake", message: `/open expected a number, got ${JSON.stringify(rest)}` };
    case "help":
    case "todo":
    case "interrupt":
    case "cancel":
    case "compact":
    case "quit":
      return rest === ""
        ? { type: name }
        : {
            type: "mistake",
            message: `/${name} takes nothing after it; got ${JSON.stringify(rest)}`,
          };
    case "exit":
      return { type: "quit" };
    default: {
      const near = suggest(`/${name}`, known);
      const hint = near === undefined ? "" : `; did you mean ${near}?`;
      return { type: "mistake", message: `unknown command /${name}${hint} (see /help)` };
    }
  }
}
