import { expect } from "vitest";
import { test } from "../support/temporal.js";

test("[todo/24] a scripted turn writes the todo list through the tool, twice, and the second list replaces the first", async ({
  lab,
}) => {
  const session = await lab.session({
    turns: [
      {
        steps: [
          {
            calls: [
              { tool: "todo_write", args: { todos: [{ content: "a", status: "in_progress" }] } },
            ],
          },
          {
            calls: [
              { tool: "todo_write", args: { todos: [{ content: "b", status: "completed" }] } },
            ],
          },
          { text: "done" },
        ],
      },
    ],
  });
  const log = await lab.play(session);
  const writes = log.filter((entry) => entry.type === "todo/write");
  expect(writes.map((entry) => entry.data.todos)).toEqual([
    [{ content: "a", status: "in_progress" }],
    [{ content: "b", status: "completed" }],
  ]);
  const results = log.filter((entry) => entry.type === "tool/result");
  expect(results.map((entry) => entry.data.error)).toEqual([undefined, undefined]);
  expect((await session.projections()).values).toEqual({
    todos: [{ content: "b", status: "completed" }],
  });
  await session.close();
});
