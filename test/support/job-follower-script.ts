// A worker process that follows one job: `node <this, compiled> <home> <session> <job> <nonce> <attempt>`.
import { join } from "node:path";

import { followJob } from "../../src/process/jobs/follow.js";
import { keepLease } from "../../src/process/jobs/lease.js";
import { openDirectoryStore } from "../../src/store/directory.js";

const [home = "", sessionId = "", jobId = "", nonce = "", attempt = ""] = process.argv.slice(2);
const lease = await keepLease(home, () => {});
const store = await openDirectoryStore(join(home, "store"));
const rank = { scheduledAt: 1_000, attempt: Number(attempt) };
await followJob({ home, sessionId, jobId, nonce, store, host: "host-1", rank }).done;
lease.stop();
