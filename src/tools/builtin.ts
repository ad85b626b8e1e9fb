import { bashTool } from "./bash.js";
import type { ToolDefinition } from "./define.js";
import { readTool } from "./read.js";
import { writeTool } from "./write.js";

/** The tools every host offers. */
export const builtinTools: readonly ToolDefinition[] = [bashTool, readTool, writeTool];
