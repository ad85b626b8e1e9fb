import { stat } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";

import type { ToolContext } from "./define.js";
import { failed } from "./file-bytes.js";
import { isInside, reasonOf, resolveInWorkspace, workspaceRoot } from "./workspace-path.js";

/** After this long a search gives what it has. */
export const searchTimeMs = 20_000;

export interface SearchPlace {
  readonly kind: "directory" | "file";
  /** Real path of the directory to search, or of the file's directory. */
  readonly root: string;
  /** The file's name. */
  readonly file: string;
  readonly rulesFrom: string;
  /** The place as the model called it. */
  readonly name: string;
  /** A path below `root` as the model can use it: relative to the workspace, or absolute outside it. */
  show(parts: readonly string[]): string;
}

/** Where glob and grep look, within the workspace. */
export async function searchPlace(
  context: Pick<ToolContext, "cwd" | "permissions">,
  path: string,
): Promise<SearchPlace> {
  const workspace = await workspaceRoot(context);
  const real = await resolveInWorkspace(context, path);
  const facts = await stat(real).catch((error: unknown) => {
    throw failed(`cannot search ${path}: ${reasonOf(error)}`);
  });
  if (!facts.isDirectory() && !facts.isFile())
    throw failed(`cannot search ${path}: it is neither a directory nor a regular file`);
  const root = facts.isDirectory() ? real : dirname(real);
  const inside = isInside(workspace, root);
  const prefix = inside ? relative(workspace, root) : root;
  return {
    kind: facts.isDirectory() ? "directory" : "file",
    root,
    file: basename(real),
    rulesFrom: inside ? workspace : root,
    name: path === "." ? "the workspace" : path,
    show: (parts) => join(prefix, ...parts).replaceAll(sep, "/"),
  };
}

/** Aborts with the call, and by itself after `ms`. */
export function stopAfter(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)]);
}
