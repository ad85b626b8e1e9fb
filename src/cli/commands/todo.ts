import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import * as z from "zod";
import { todoStatuses, type TodoItem } from "../../contracts/todo.js";
import { LonghaulError } from "../../contracts/errors.js";
import { command, homeOption, jsonOption, type Context } from "../command.js";
import { usage } from "../parse.js";
import { terminalOf } from "../render/terminal.js";
import { todoLines } from "../render/todos.js";
import { readAll, sessionIdOf, settingsOf } from "./settings.js";

export const todoCommand = command({
  name: "todo",
  summary: "Show or replace a session's todo list",
  words: "<session> [set 'content' ...]",
  minWords: 1,
  maxWords: Infinity,
  options: {
    file: {
      type: "string",
      value: "file",
      help: "with set: the list as a JSON array of {content, status}; - reads stdin",
    },
    ...jsonOption,
    ...homeOption,
  },
  details: [
    "set replaces the whole list, and only while a turn runs. Each word is one todo; it is pending, or what",
    "it begins with: '[ ] ' pending, '[>] ' in progress, '[x] ' completed.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const id = sessionIdOf(words, "todo");
    const [, verb, ...contents] = words;
    if (verb !== undefined && verb !== "set")
      throw usage(
        `todo knows "set" after the session, got ${JSON.stringify(verb)}`,
        "longhaul todo --help",
      );
    if (verb === undefined && options.file !== undefined)
      throw usage("--file goes with set", "longhaul todo --help");
    const wanted =
      verb === undefined ? undefined : await wantedList(context, contents, options.file);
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const session = backend.session(id);
    if (wanted !== undefined) {
      const result = await context.orStop(session.writeTodos({ todos: wanted }));
      io.stdout.write(
        options.json === true
          ? `${JSON.stringify({ session: id, seq: result.seq, todos: wanted }, undefined, 2)}\n`
          : `${result.text}\n`,
      );
      return 0;
    }
    const todos = await context.orStop(session.todos());
    if (options.json === true)
      io.stdout.write(`${JSON.stringify({ session: id, todos }, undefined, 2)}\n`);
    else if (todos === null) io.stdout.write("no todo list\n");
    else
      for (const line of todoLines(todos, terminalOf(io.stdout, io.env)))
        io.stdout.write(`${line}\n`);
    return 0;
  },
});

const List = z.array(z.strictObject({ content: z.string(), status: z.enum(todoStatuses) }));

async function wantedList(
  context: Context,
  contents: readonly string[],
  file: string | undefined,
): Promise<readonly TodoItem[]> {
  if (file === undefined) {
    if (contents.length === 0)
      throw usage(
        "todo set expected 'content' ... or --file, got nothing (an empty list: --file with [])",
        "longhaul todo --help",
      );
    return contents.map(itemOf);
  }
  if (contents.length > 0)
    throw usage("todo set takes --file or contents, not both", "longhaul todo --help");
  const text =
    file === "-"
      ? await context.orStop(readAll(context.io.stdin))
      : await readText(resolve(context.io.cwd, file));
  const from = file === "-" ? "stdin" : file;
  const checked = List.safeParse(parsed(text, from));
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  const where = (issue?.path ?? [])
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("");
  throw new LonghaulError(
    "INVALID_TODOS",
    `${from}: $${where} ${issue?.message ?? "is wrong"}; expected a JSON array of {"content": text, "status": ${todoStatuses.join(" | ")}}`,
  );
}

const marks: Readonly<Record<string, TodoItem["status"]>> = {
  "[ ]": "pending",
  "[>]": "in_progress",
  "[x]": "completed",
  "[X]": "completed",
};

function itemOf(word: string): TodoItem {
  const status = marks[word.slice(0, 3)];
  return status === undefined || !/^\s/.test(word.slice(3))
    ? { content: word, status: "pending" }
    : { content: word.slice(4), status };
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new LonghaulError("USAGE", `--file expected a readable file, got ${reason} for ${path}`, {
      cause: error,
    });
  }
}

function parsed(text: string, from: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new LonghaulError(
      "INVALID_TODOS",
      `${from}: expected JSON (${error instanceof Error ? error.message : String(error)})`,
      { cause: error },
    );
  }
}
