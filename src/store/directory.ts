import { randomUUID } from "node:crypto";
import { constants, type Dirent } from "node:fs";
import {
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
  type FileHandle,
} from "node:fs/promises";
import { join, resolve } from "node:path";
import { LonghaulError } from "../contracts/errors.js";
import type { Store } from "../contracts/store.js";
import { appendTo } from "./append.js";
import { compareIds, fileNameOf } from "./file-name.js";
import { isSystemError, readFully, syncDirectory, unavailable } from "./file-io.js";
import { makeDirectory } from "./make-directory.js";
import { createSerialTasks } from "./serial.js";
import { forgetId, idOf, keepId } from "./sidecar.js";

const removedPrefix = "~removed~";
// One chain per file for the whole process: two stores opened on one directory must not write one file at once.
const appends = createSerialTasks();

/**
 * A store in a directory: a folder per session, a plain file per stream (names: `fileNameOf`). Several processes may
 * use it at once, also over a network file system.
 *
 * Writing: `append` hands the bytes to the system (`write` at their position) before it returns, so a kill of this
 * process loses nothing; a kill in the middle leaves a prefix, which the repeated append completes. `sync` flushes the
 * file (`fdatasync`) and the names of its folder and session (`fsync` of both directories): only then does it survive a
 * power cut. Without `sync` a power cut may lose or zero the tail.
 *
 * Sharing: appends to one stream are serial within a process. Between processes equal bytes end up once, because every
 * byte is written at its own position; writers of different bytes are told (STORE_CONFLICT) when they meet bytes
 * already written, and the one that wrote first when it verifies what it wrote. A stream should have one writer.
 *
 * Rejects with STORE_UNAVAILABLE when the directory cannot be made.
 */
export async function openDirectoryStore(root: string): Promise<Store> {
  const path = resolve(root);
  let base: string;
  try {
    makeDirectory(path, 0o700);
    base = await realpath(path);
    await deleteRemoved(base);
  } catch (error) {
    throw unavailable("open the store", path, error);
  }
  return new DirectoryStore(base);
}

class DirectoryStore implements Store {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async append(
    session: string,
    stream: string,
    offset: number,
    bytes: Uint8Array,
  ): Promise<number> {
    expectCount("offset", offset);
    const path = this.locator(session, stream);
    return appends.run(path, () =>
      guarded("write", path, async () => {
        await using file = await this.#create(session, stream);
        return await appendTo(file, `stream ${stream} of session ${session}`, offset, bytes);
      }),
    );
  }

  async read(session: string, stream: string, offset: number, limit: number): Promise<Uint8Array> {
    expectCount("offset", offset);
    expectCount("limit", limit);
    const path = this.locator(session, stream);
    return guarded("read", path, async () => {
      await using file = await openExisting(path, session, stream);
      return await readFully(file, offset, limit);
    });
  }

  async size(session: string, stream: string): Promise<number | undefined> {
    const path = this.locator(session, stream);
    return guarded("read", path, () => sizeOf(path));
  }

  async sync(session: string, stream: string): Promise<void> {
    const path = this.locator(session, stream);
    await guarded("flush", path, async () => {
      await using file = await openExisting(path, session, stream);
      await file.datasync();
      await syncDirectory(this.#folder(session));
      await syncDirectory(this.#root);
    });
  }

  async list(
    session: string,
    prefix: string,
  ): Promise<readonly { readonly stream: string; readonly bytes: number }[]> {
    const folder = this.#folder(session);
    return guarded("read", folder, async () => {
      const streams: { stream: string; bytes: number }[] = [];
      const visit = async (entry: Dirent): Promise<void> => {
        const stream = await idOf(folder, entry.name);
        if (stream === undefined || !stream.startsWith(prefix)) return;
        const bytes = await sizeOf(join(folder, entry.name));
        if (bytes !== undefined) streams.push({ stream, bytes });
      };
      await Promise.all((await entriesOf(folder)).map(visit));
      return streams.toSorted((a, b) => compareIds(a.stream, b.stream));
    });
  }

  async *sessions(): AsyncGenerator<string, void, undefined> {
    const root = this.#root;
    const entries = await guarded("read", root, () => entriesOf(root));
    const folders = entries.filter((entry) => entry.isDirectory());
    const ids = await Promise.all(folders.map(({ name }) => idOf(root, name)));
    yield* ids.filter((id) => id !== undefined).toSorted(compareIds);
  }

  async remove(session: string): Promise<void> {
    const folder = this.#folder(session);
    await appends.settled(join(folder, "/"));
    await guarded("remove", folder, async () => {
      // Out of the way first, so that no reader sees half a session and no writer gets between.
      const doomed = join(this.#root, `${removedPrefix}${randomUUID()}`);
      try {
        await rename(folder, doomed);
      } catch (error) {
        if (isSystemError(error, "ENOENT")) return;
        throw error;
      }
      await rm(doomed, { recursive: true, force: true });
      await forgetId(this.#root, session);
    });
  }

  locator(session: string, stream: string): string {
    return join(this.#folder(session), fileNameOf(stream));
  }

  async check(): Promise<void> {
    const probe = join(this.#root, `~check~${randomUUID()}`);
    await guarded("write to the store", this.#root, async () => {
      try {
        await writeFile(probe, "ok", { flag: "wx" });
      } finally {
        await rm(probe, { force: true });
      }
    });
  }

  #folder(session: string): string {
    return join(this.#root, fileNameOf(session));
  }

  /** Opens a stream's file to read and write, making it and its session's folder when they are not there. */
  async #create(session: string, stream: string): Promise<FileHandle> {
    const path = this.locator(session, stream);
    const found = await openIfThere(path, constants.O_RDWR);
    if (found !== undefined) return found;
    const folder = this.#folder(session);
    // Not recursive: a root that has gone (an unmounted disk) must not be made again in its place.
    await mkdir(folder).catch((error: unknown) => {
      if (!isSystemError(error, "EEXIST")) throw error;
    });
    await keepId(this.#root, session);
    await keepId(folder, stream);
    return open(path, constants.O_RDWR | constants.O_CREAT, 0o666);
  }
}

async function guarded<T>(action: string, path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof LonghaulError) throw error;
    throw unavailable(action, path, error);
  }
}

async function openIfThere(path: string, flags: number): Promise<FileHandle | undefined> {
  try {
    return await open(path, flags);
  } catch (error) {
    if (isSystemError(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function openExisting(path: string, session: string, stream: string): Promise<FileHandle> {
  const file = await openIfThere(path, constants.O_RDONLY);
  if (file !== undefined) return file;
  throw new LonghaulError(
    "STREAM_NOT_FOUND",
    `session ${session} has no stream ${stream}: nothing was written at ${path}`,
  );
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isSystemError(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return (await readdir(folder, { withFileTypes: true })).filter(
      (entry) => !entry.name.startsWith("~"),
    );
  } catch (error) {
    if (isSystemError(error, "ENOENT")) return [];
    throw error;
  }
}

async function deleteRemoved(root: string): Promise<void> {
  const names = (await readdir(root)).filter((name) => name.startsWith(removedPrefix));
  await Promise.all(names.map((name) => rm(join(root, name), { recursive: true, force: true })));
}

function expectCount(name: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 0) return;
  throw new LonghaulError(
    "INVALID_INPUT",
    `expected ${name} to be a whole number from 0, got ${value}`,
  );
}
