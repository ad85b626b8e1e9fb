// Replays every history of releases and says where they end: `node --import tsx <this> <bundle> <version>...`.
import { DefaultLogger, Runtime } from "@temporalio/worker";
import { replayStates, type States } from "../support/digests.js";
import { namesOf, readHistory } from "./histories.js";

const [bundle = "", ...versions] = process.argv.slice(2);
Runtime.install({ logger: new DefaultLogger("ERROR") });
const histories = new Map(
  versions.flatMap((version) =>
    namesOf(version).map((name) => [`${version}/${name}`, readHistory(version, name)] as const),
  ),
);
const { timeZone: zone } = new Intl.DateTimeFormat().resolvedOptions();
process.stdout.write(
  JSON.stringify({ zone, histories: await replayStates(bundle, histories) } satisfies States),
);
