// A program that embeds Longhaul: it runs a worker of its own, creates a session, streams it and reacts to its end.
// The model is scripted, so it runs without a key: npx tsx examples/embed.ts <Temporal address> <directory>
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { defineSessionConfig, LonghaulClient } from "longhaul";
import { createScriptedProvider } from "longhaul/testing";
import { openDirectoryStore, startWorker } from "longhaul/worker";

const [address = "127.0.0.1:7233", home = join(process.cwd(), "longhaul-data")] =
  process.argv.slice(2);
const cwd = join(home, "workspace");
mkdirSync(cwd, { recursive: true });

const store = await openDirectoryStore(join(home, "store"));
const models = [
  createScriptedProvider({
    scenarios: {
      greeting: {
        name: "greeting",
        turns: [
          {
            steps: [
              {
                calls: [
                  { tool: "bash", args: { command: "echo hello from bash", description: "Greet" } },
                ],
              },
              { text: "Bash says hello.", expect: { toolResults: ["hello from bash"] } },
            ],
          },
        ],
      },
    },
  }),
];
const connection = { address };
const worker = await startWorker({ connection, home, store, hostId: "embedded", models });

await using client = await LonghaulClient.connect({ connection, store });
const config = defineSessionConfig({
  model: "scripted/greeting",
  allowParallelInProgress: true,
  cwd,
});
const session = await client.createSession({ config, host: "embedded", title: "A greeting" });
const { seq } = await session.followup("Say hello", { id: "greeting-1" });

for await (const event of session.watch()) {
  if (event.type === "delta") process.stdout.write(event.text);
  if (event.type === "entry" && event.entry.type === "tool/call") {
    process.stdout.write(`[${event.entry.data.name}]\n`);
  }
  if (event.type === "entry" && event.entry.type === "turn/end") break;
}

const outcome = await session.outcome({ after: seq - 1 });
process.stdout.write(`\nturn ${outcome.turn ?? 0}: ${outcome.kind}\n`);
await session.close();
await worker.stop();
