import type { TodoItem } from "../../contracts/todo.js";
import { oneLine } from "./clean.js";
import { fit, glyphsOf, styled, type Terminal } from "./terminal.js";

/** The list as lines: a heading with the count, then one line an item. */
export function todoLines(todos: readonly TodoItem[], terminal: Terminal): readonly string[] {
  if (todos.length === 0) return ["Todo  (empty)"];
  const done = todos.filter((todo) => todo.status === "completed").length;
  return [
    `${styled(terminal, "bold", "Todo")}  ${styled(terminal, "dim", `${done} of ${todos.length} done`)}`,
    ...todos.map((todo) => todoLine(todo, terminal)),
  ];
}

function todoLine(todo: TodoItem, terminal: Terminal): string {
  const glyphs = glyphsOf(terminal);
  const [glyph, style] = (
    {
      pending: [glyphs.pending, undefined],
      in_progress: [glyphs.inProgress, "cyan"],
      completed: [glyphs.completed, "dim"],
    } as const
  )[todo.status];
  const line = fit(`  ${glyph} ${oneLine(todo.content)}`, terminal.columns, glyphs.ellipsis);
  return style === undefined ? line : styled(terminal, style, line);
}
