/** A host worker in a process of its own; the recorder kills it. Its settings come as JSON in the first argument. */
import { openDirectoryStore } from "../../src/store/directory.js";
import { startWorker } from "../../src/worker/index.js";

const [settings = ""] = process.argv.slice(2);
const { address, home, hostId, store, bundle } = JSON.parse(settings) as {
  readonly [key: string]: string;
};
if (
  address === undefined ||
  home === undefined ||
  hostId === undefined ||
  store === undefined ||
  bundle === undefined
)
  throw new Error(`expected settings, got ${settings}`);
await startWorker({
  connection: { address },
  home,
  hostId,
  store: await openDirectoryStore(store),
  roles: ["host"],
  workflowBundlePath: bundle,
});
process.stdout.write("up\n");
