// A worker with the providers of its environment: `node <this, compiled> <options as JSON>`. Ends with its input.
import { providersFromEnv } from "../../src/models/providers.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { startWorker, type StartWorkerOptions } from "../../src/worker/index.js";

export interface ProviderWorkerOptions extends Omit<StartWorkerOptions, "store" | "models"> {
  readonly storeDirectory: string;
}

const { storeDirectory, ...options } = JSON.parse(process.argv[2] ?? "") as ProviderWorkerOptions;
const worker = await startWorker({
  ...options,
  store: await openDirectoryStore(storeDirectory),
  models: providersFromEnv(process.env),
});
process.stdout.write("ready\n");
process.stdin.on("end", () => void worker.stop().then(() => process.exit(0))).resume();
