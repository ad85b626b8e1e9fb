import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { openDirectoryStore } from "../../store/directory.js";
import { fail, ok, reasonOf, type Check } from "./check.js";
import {
  diskCheck,
  nodeCheck,
  permissionCheck,
  timeZoneCheck,
  type DirectoryFacts,
} from "./machine.js";

/** What this machine says: Node, its data, the data directory, the disk, the store. */
export async function lookAtMachine(home: string): Promise<readonly Check[]> {
  const { node, icu, tz } = process.versions;
  const runtime = { node, icu, tz, now: Date.now() };
  return [
    nodeCheck(runtime),
    timeZoneCheck(runtime),
    await directories(home),
    await disk(home),
    await store(join(home, "store")),
  ];
}

async function directories(home: string): Promise<Check> {
  try {
    const inside = ["store", "temporal"].map((one) => join(home, one)).filter(existsSync);
    const facts = await Promise.all([home, ...inside].map(factsOf));
    const [first, ...others] = facts;
    if (first === undefined) throw new Error(`${home} is not there`);
    return permissionCheck(first, others, process.getuid?.());
  } catch (error) {
    return fail(
      "Data directory",
      reasonOf(error),
      `make ${home} a directory that you own, or name another one (LONGHAUL_HOME)`,
    );
  }
}

async function factsOf(path: string): Promise<DirectoryFacts> {
  const { mode, uid } = await stat(path);
  return { path, mode, uid };
}

async function disk(home: string): Promise<Check> {
  let path = home;
  while (!existsSync(path) && dirname(path) !== path) path = dirname(path);
  const { bavail, bsize } = await statfs(path);
  return diskCheck(path, bavail * bsize);
}

/** Writes, flushes, reads and removes a stream, as a session would. */
async function store(path: string): Promise<Check> {
  const name = "Store";
  const session = `doctor-${randomUUID()}`;
  const bytes = Buffer.from("longhaul doctor\n");
  try {
    const opened = await openDirectoryStore(path);
    await opened.check();
    try {
      await opened.append(session, "probe", 0, bytes);
      await opened.sync(session, "probe");
      const read = Buffer.from(await opened.read(session, "probe", 0, bytes.length + 1));
      if (!read.equals(bytes))
        throw new Error(`wrote ${bytes.length} bytes, read ${read.length} others`);
    } finally {
      await opened.remove(session);
    }
    return ok(name, `${path} takes, keeps and gives back a stream`);
  } catch (error) {
    return fail(
      name,
      reasonOf(error),
      `give this user the right to write ${path}, or name another data directory (LONGHAUL_HOME)`,
    );
  }
}
