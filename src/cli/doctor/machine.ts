import { fail, ok, warn, type Check } from "./check.js";

/** The oldest Node that Longhaul runs on; package.json says the same. */
const oldestNode = [20, 19] as const;

export interface RuntimeFacts {
  /** `process.versions.node`. */
  readonly node: string;
  readonly icu?: string | undefined;
  /** Edition of the time-zone data, e.g. `2025c`. */
  readonly tz?: string | undefined;
  /** Epoch ms. */
  readonly now: number;
}

export function nodeCheck({ node }: RuntimeFacts): Check {
  const [major = 0, minor = 0] = node.split(".").map(Number);
  const [wantedMajor, wantedMinor] = oldestNode;
  const old = major < wantedMajor || (major === wantedMajor && minor < wantedMinor);
  return old
    ? fail("Node", node, `install Node ${wantedMajor}.${wantedMinor} or newer`)
    : ok("Node", node);
}

/** Zones change their rules several times a year, and the data comes with Node. */
export function timeZoneCheck({ icu, tz, now }: RuntimeFacts): Check {
  const name = "Time zones";
  if (icu === undefined || tz === undefined)
    return warn(name, "this Node tells no ICU or tz version", "use a Node with full ICU");
  const found = `tz data ${tz}, ICU ${icu}`;
  const age = new Date(now).getUTCFullYear() - Number.parseInt(tz, 10);
  return age >= 2
    ? warn(
        name,
        `${found}: ${age} years old`,
        "install a newer release of your Node line; it brings newer data",
      )
    : ok(name, found);
}

/** A directory as `stat` shows it. */
export interface DirectoryFacts {
  readonly path: string;
  readonly mode: number;
  readonly uid: number;
}

/**
 * The data directory, and the directories in it that hold what sessions say (`store`, `temporal`). `user` is the
 * user id of this process; undefined where the system has none.
 */
export function permissionCheck(
  home: DirectoryFacts,
  inside: readonly DirectoryFacts[],
  user: number | undefined,
): Check {
  const name = "Data directory";
  if (user === undefined) return ok(name, home.path);
  const foreign = [home, ...inside].find((one) => one.uid !== user);
  if (foreign !== undefined)
    return warn(
      name,
      `${foreign.path} belongs to user ${foreign.uid}, this is user ${user}`,
      `sudo chown -R ${user} ${foreign.path}, or run Longhaul as its owner`,
    );
  // Whoever may write here may give the server another database, or this machine another host id.
  if ((home.mode & 0o022) !== 0)
    return warn(
      name,
      `${home.path} may be written by others (${octal(home.mode)})`,
      `chmod go-w ${home.path}`,
    );
  const open = inside.find((one) => (one.mode & 0o077) !== 0);
  return open === undefined || (home.mode & 0o077) === 0
    ? ok(name, `${home.path} (${octal(home.mode)})`)
    : warn(
        name,
        `${open.path} may be read by others (${octal(open.mode)})`,
        `chmod 700 ${open.path}`,
      );
}

/** `free`: bytes that this user may still write where `path` is. */
export function diskCheck(path: string, free: number): Check {
  const name = "Disk space";
  const found = `${size(free)} free at ${path}`;
  const cure = "free some space, or move the data directory (LONGHAUL_HOME)";
  if (free < 100e6) return fail(name, found, cure);
  return free < 1e9 ? warn(name, found, cure) : ok(name, found);
}

function size(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(0)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, "0");
}
