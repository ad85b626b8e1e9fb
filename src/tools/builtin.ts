import { bashTool } from "./bash.js";
import type { ToolDefinition } from "./define.js";
import { editTool } from "./edit.js";
import { globTool } from "./glob.js";
import { grepTool } from "./grep.js";
import { readTool } from "./read.js";
import { writeTool } from "./write.js";

/** The tools every host offers. */
export const builtinTools: readonly ToolDefinition[] = [
  bashTool,
  readTool,
  writeTool,
  editTool,
  globTool,
  grepTool,
];
