import { randomUUID } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileNameOf, idOfFileName, isHashedName, sidecarOf } from "./file-name.js";

/** The id a name in this folder stands for; undefined for a file that is not the store's. */
export async function idOf(folder: string, name: string): Promise<string | undefined> {
  if (!isHashedName(name)) return idOfFileName(name);
  try {
    const id: unknown = JSON.parse(await readFile(join(folder, sidecarOf(name)), "utf8"));
    return typeof id === "string" && fileNameOf(id) === name ? id : undefined;
  } catch {
    return undefined;
  }
}

/** Writes the sidecar of an id whose name is hashed; whole or not at all, before the thing it names. */
export async function keepId(folder: string, id: string): Promise<void> {
  const name = fileNameOf(id);
  if (!isHashedName(name)) return;
  const draft = join(folder, `~draft~${randomUUID()}`);
  // JSON, because UTF-8 alone would not bring back an unpaired surrogate.
  await writeFile(draft, JSON.stringify(id));
  await rename(draft, join(folder, sidecarOf(name)));
}

/** Removes the sidecar of an id, if it has one. */
export async function forgetId(folder: string, id: string): Promise<void> {
  const name = fileNameOf(id);
  if (isHashedName(name)) await rm(join(folder, sidecarOf(name)), { force: true });
}
