import * as z from "zod";
import { defineTool } from "../../src/tools/define.js";

const parameters = z.object({ bytes: z.int(), note: z.string().optional() });

/** A world tool on the session's host that answers with as many bytes as it is asked for. */
export const produce = defineTool({
  name: "produce",
  description: "Answers with text of the given length.",
  parameters,
  execute: ({ bytes }) => "y".repeat(bytes),
});

/** The same, but calls of one step may overlap. */
export const produceAtOnce = defineTool({
  name: "produce_at_once",
  description: "Answers with text of the given length.",
  parameters,
  parallel: true,
  execute: ({ bytes }) => "y".repeat(bytes),
});
