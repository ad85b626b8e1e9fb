import { lstat, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

import { LonghaulError } from "../contracts/errors.js";
import type { ToolContext } from "./define.js";

/** The session's workspace with symlinks resolved; WORKSPACE when there is none. */
export async function workspaceRoot(context: Pick<ToolContext, "cwd">): Promise<string> {
  if (context.cwd === undefined) {
    throw new LonghaulError(
      "WORKSPACE",
      "this session has no workspace; open it with an absolute cwd",
    );
  }
  try {
    return await realpath(context.cwd);
  } catch (error) {
    throw new LonghaulError(
      "WORKSPACE",
      `the workspace ${context.cwd} cannot be used: ${reasonOf(error)}`,
      { cause: error },
    );
  }
}

/**
 * The real path behind `path`, relative to the workspace; it need not exist. WORKSPACE when it lies outside and that
 * is not permitted, whatever symlinks are on the way.
 */
export async function resolveInWorkspace(
  context: Pick<ToolContext, "cwd" | "permissions">,
  path: string,
): Promise<string> {
  if (path === "" || path.includes("\0"))
    throw new LonghaulError("TOOL_FAILED", "path must be a non-empty string without NUL");
  const root = await workspaceRoot(context);
  let real: string;
  try {
    real = await realTarget(resolve(root, path), 0);
  } catch (error) {
    throw new LonghaulError("TOOL_FAILED", `${path} cannot be resolved: ${reasonOf(error)}`, {
      cause: error,
    });
  }
  if (!context.permissions.outsideWorkspace && !isInside(root, real)) {
    throw new LonghaulError(
      "WORKSPACE",
      `${path} is outside the workspace ${root}; use a path inside it`,
    );
  }
  return real;
}

/** Where a command runs: `workdir` from the workspace on; WORKSPACE when it is no directory. Commands are not fenced in. */
export async function commandDirectory(
  context: Pick<ToolContext, "cwd">,
  workdir: string | undefined,
): Promise<string> {
  await workspaceRoot(context);
  const path = resolve(context.cwd ?? "/", workdir ?? ".");
  let reason = "it is not a directory";
  try {
    if ((await stat(path)).isDirectory()) return path;
  } catch (error) {
    reason = reasonOf(error);
  }
  throw new LonghaulError(
    "WORKSPACE",
    `cannot run in ${path}: ${reason}; give a workdir that exists`,
  );
}

/** The cause of a file-system error in a few words. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const known: Record<string, string> = {
    EACCES: "no permission",
    EPERM: "no permission",
    EROFS: "the file system is read-only",
    ENOENT: "it does not exist",
    ENOTDIR: "a part of the path is not a directory",
    EISDIR: "it is a directory",
    ELOOP: "too many symbolic links",
    ENAMETOOLONG: "the name is too long",
    ENOSPC: "the disk is full",
  };
  return known[code] ?? (error instanceof Error ? error.message : String(error));
}

/** `realpath` that goes on where the path ends: the rest is kept, and a dangling link counts as what it points to. */
async function realTarget(path: string, links: number): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  const parent = await realTarget(dirname(path), links);
  const here = join(parent, basename(path));
  const isLink = await lstat(here).then(
    (facts) => facts.isSymbolicLink(),
    () => false,
  );
  if (!isLink) return here;
  if (links >= 40) throw Object.assign(new Error("too many symbolic links"), { code: "ELOOP" });
  return await realTarget(resolve(parent, await readlink(here)), links + 1);
}

/** Is `path` the directory `root` or below it? Both real. */
export function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || !(way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way));
}
