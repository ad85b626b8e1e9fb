// Replays prefixes of a history and says what the workflow did: `node --import tsx <this> <bundle> <file of a history> <id>`.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { DefaultLogger, Runtime } from "@temporalio/worker";
import {
  logOf,
  prefixesOf,
  replayActivations,
  type Activation,
  type Digests,
  type HistoryJson,
} from "./digests.js";

const [bundle = "", file = "", id = ""] = process.argv.slice(2);
Runtime.install({ logger: new DefaultLogger("ERROR") });
let last: readonly Activation[] = [];
const prefixes: string[][] = [];
for (const prefix of prefixesOf(JSON.parse(readFileSync(file, "utf8")) as HistoryJson)) {
  last = await replayActivations(bundle, prefix, id);
  prefixes.push(last.map(digestOf));
}
const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
const types = logOf(last).map(({ type }) => type);
process.stdout.write(JSON.stringify({ zone, types, prefixes } satisfies Digests));

function digestOf(activation: Activation): string {
  return createHash("sha256").update(JSON.stringify(activation)).digest("hex");
}
