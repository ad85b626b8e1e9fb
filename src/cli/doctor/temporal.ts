import { searchAttributes } from "../../contracts/names.js";
import { fail, ok, warn, type Check } from "./check.js";

/** The server that this environment and data directory lead to. */
export type ServerFacts =
  | {
      readonly kind: "cluster" | "embedded";
      readonly address: string;
      readonly namespace: string;
      /** The variables that name it, or the program that runs it. */
      readonly from: string;
      readonly version: string;
    }
  /** It is named or recorded as running, and cannot be used. */
  | { readonly kind: "unusable"; readonly message: string }
  /** The embedded server does not run; this is what would be started. */
  | {
      readonly kind: "stopped";
      readonly died: boolean;
      readonly log: string;
      readonly binary: {
        readonly path: string;
        readonly version: string;
        readonly tried: readonly string[];
      };
    }
  | { readonly kind: "no binary"; readonly message: string };

const startIt = "it starts with the next command; `longhaul server start` keeps it up";

export function serverCheck(facts: ServerFacts): Check {
  const name = "Temporal server";
  switch (facts.kind) {
    case "cluster":
    case "embedded":
      return ok(
        name,
        `${facts.version} at ${facts.address}, namespace ${facts.namespace}, ` +
          (facts.kind === "cluster" ? `named by ${facts.from}` : `run from ${facts.from}`),
      );
    case "unusable": {
      const { found, cure } = split(facts.message);
      return fail(
        name,
        found,
        cure ?? "`longhaul server status` tells its log; stop it with --force and start it",
      );
    }
    case "stopped": {
      const { path, version, tried } = facts.binary;
      const passed = tried.length === 0 ? "" : `; passed over: ${tried.join("; ")}`;
      const state = facts.died ? `it died (log: ${facts.log})` : "not running";
      return warn(name, `${state}; CLI ${version} is at ${path}${passed}`, startIt);
    }
    case "no binary": {
      const { found, cure } = split(facts.message);
      return fail(name, found, cure ?? "install the Temporal CLI");
    }
  }
}

export interface AttributeFacts {
  readonly address: string;
  readonly namespace: string;
  readonly present: ReadonlySet<string>;
  /** Those present with the type Longhaul needs. */
  readonly usable: ReadonlySet<string>;
  /** Why the server does not tell. */
  readonly refused?: string;
}

export function attributeCheck(wanted: readonly string[], facts: AttributeFacts): Check {
  const name = "Search attributes";
  const { address, namespace, present, usable, refused } = facts;
  if (refused !== undefined)
    return warn(
      name,
      `those of "${namespace}" cannot be read (${refused})`,
      `ask for the right to list them, or have these registered: ${wanted.map((one) => `${one} (${typeOf(one)})`).join(", ")}`,
    );
  const missing = wanted.filter((one) => !present.has(one));
  if (missing.length > 0)
    return warn(
      name,
      `${missing.join(", ")} not registered in "${namespace}"`,
      `start a worker, which registers them, or run: temporal operator search-attribute create --address ${address} -n ${namespace} ${missing
        .map((one) => `--name ${one} --type ${typeOf(one)}`)
        .join(" ")}`,
    );
  const wrong = wanted.filter((one) => !usable.has(one));
  return wrong.length > 0
    ? warn(
        name,
        wrong.map((one) => `${one} in "${namespace}" is not of type ${typeOf(one)}`).join("; "),
        "use another namespace (TEMPORAL_NAMESPACE), or remove it there and start a worker",
      )
    : ok(name, `${wanted.join(", ")} registered in "${namespace}"`);
}

function typeOf(name: string): string {
  return Object.entries(searchAttributes).find(([known]) => known === name)?.[1] ?? "Keyword";
}

export interface Poller {
  readonly identity: string;
  /** Since its last poll, ms, by the server's clock. */
  readonly age: number;
}

/** The live pollers of each queue, by its name. */
export type QueueFacts = Readonly<Record<string, readonly Poller[]>>;

export function workerCheck(
  what: { readonly name: string; readonly role: string },
  queues: QueueFacts,
): Check {
  const { name, role } = what;
  const empty = Object.keys(queues).filter((queue) => queues[queue]?.length === 0);
  if (empty.length > 0)
    return warn(
      name,
      `nobody polls ${empty.join(", ")}`,
      `longhaul worker --role ${role} (start, chat and run bring a worker of their own)`,
    );
  const seen = Object.entries(queues).map(([queue, pollers]) => {
    const identities = [...new Set(pollers.map((one) => one.identity))];
    const age = Math.max(0, Math.round(Math.min(...pollers.map((one) => one.age)) / 1000));
    return `${queue} by ${identities.join(", ")} (${age} s ago)`;
  });
  return ok(name, seen.join("; "));
}

/** The server keeps a poller listed for minutes after its end; one that lives polls again within this time, ms. */
const livePollMs = 75_000;

/** Those that polled lately enough to be alive. */
export function livePollers(pollers: readonly Poller[]): readonly Poller[] {
  return pollers.filter((one) => one.age < livePollMs);
}

export interface ClockFacts {
  /** Server time minus time here, ms. */
  readonly skew: number;
  /** The skew may be this much more or less, ms. */
  readonly margin: number;
}

/** The server said `serverTime` to a request that went out at `sent` and was answered at `answered`, here, ms. */
export function clockFacts(sent: number, serverTime: number, answered: number): ClockFacts {
  return { skew: serverTime - (sent + answered) / 2, margin: (answered - sent) / 2 };
}

export function clockCheck({ skew, margin }: ClockFacts): Check {
  const name = "Clock";
  const by = `${(Math.abs(skew) / 1000).toFixed(1)} s ${skew > 0 ? "behind" : "ahead of"} the server's`;
  const known = `± ${(margin / 1000).toFixed(1)} s`;
  if (Math.abs(skew) - margin > 2_000)
    return warn(
      name,
      `${by} (${known})`,
      "set both clocks by NTP (timedatectl set-ntp true); sessions go by the server's",
    );
  return ok(name, `as the server's (${known})`);
}

/** A message's last sentence says what to do. */
function split(message: string): { readonly found: string; readonly cure?: string } {
  const parts = /^(?<found>.+[^.\d])[.;] (?<cure>\S.*)$/su.exec(message)?.groups;
  const [found, cure] = [parts?.["found"], parts?.["cure"]];
  return found === undefined || cure === undefined ? { found: message } : { found, cure };
}
