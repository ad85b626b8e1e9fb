// A worker process that follows one job of the test kinds: `node <this, compiled> <home> <kind> <job> <attempt>`.
import { join } from "node:path";

import { createJobHost } from "../../src/kinds/job-host.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { testKinds } from "./job-kinds.js";

const [home = "", kind = "", jobId = "", attempt = ""] = process.argv.slice(2);
const store = await openDirectoryStore(join(home, "store"));
const host = createJobHost({ home, host: "host-1", store, kinds: testKinds, maxJobs: 10 });
await host.follow({
  sessionId: "session-1",
  jobId,
  nonce: "n0nce",
  kind,
  rank: { scheduledAt: 1_000, attempt: Number(attempt) },
  outputBytes: 67_108_864,
}).done;
