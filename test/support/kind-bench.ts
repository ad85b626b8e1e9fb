import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

import type { JsonObject } from "../../src/contracts/header.js";
import type { JobOutcome } from "../../src/contracts/jobs.js";
import type { Store } from "../../src/contracts/store.js";
import type {
  BeginJob,
  BegunJob,
  FollowedEnd,
  FollowedJob,
  FollowKind,
} from "../../src/kinds/following.js";
import { createJobHost, type JobHost } from "../../src/kinds/job-host.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { compiledScript } from "./compiled-script.js";
import { testKinds } from "./job-kinds.js";

export interface KindBench {
  readonly home: string;
  readonly cwd: string;
  readonly store: Store;
  readonly host: JobHost;
  /** The n-th job of this bench. */
  job(kind: string, input: JsonObject): BeginJob;
  begin(kind: string, input: JsonObject): Promise<BeginJob>;
  /** Attempts of one bench come one after the other unless `changes` says otherwise. */
  follow(job: BeginJob, changes?: Partial<FollowKind>): FollowedJob;
  /** A worker process that follows the job. */
  followElsewhere(job: BeginJob): ChildProcess;
  /** A file of the workspace; empty while it is not there. */
  content(name: string): Promise<string>;
  write(name: string, text?: string): Promise<void>;
}

export async function openKindBench(
  options: { readonly maxJobs?: number } = {},
): Promise<KindBench> {
  const home = await realpath(await mkdtemp(join(tmpdir(), "longhaul-kinds-")));
  const cwd = join(home, "workspace");
  await mkdir(cwd);
  const store = await openDirectoryStore(join(home, "store"));
  const children: ChildProcess[] = [];
  onTestFinished(async () => {
    for (const child of children) child.kill("SIGKILL");
    await rm(home, { recursive: true, force: true });
  });
  const { maxJobs = 10 } = options;
  const host = createJobHost({ home, host: "host-1", store, kinds: testKinds, maxJobs });
  let jobs = 0;
  let attempts = 0;
  const job = (kind: string, input: JsonObject): BeginJob => {
    jobs += 1;
    return {
      sessionId: "session-1",
      jobId: `${kind}-${jobs}`,
      nonce: "n0nce",
      token: "session-1:run-1",
      kind,
      label: "a job",
      input,
      cwd,
      outsideWorkspace: false,
      orphanGraceMs: 60_000,
      outputBytes: 67_108_864,
    };
  };
  return {
    home,
    cwd,
    store,
    host,
    job,
    async begin(kind, input) {
      const given = job(kind, input);
      const begun: BegunJob = await host.begin(given);
      if (begun.kind !== "begun") throw new Error(JSON.stringify(begun));
      return given;
    },
    follow({ sessionId, jobId, nonce, kind, outputBytes }, changes = {}) {
      attempts += 1;
      const rank = { scheduledAt: 1_000, attempt: attempts };
      return host.follow({ sessionId, jobId, nonce, kind, outputBytes, rank, ...changes });
    },
    followElsewhere({ kind, jobId }) {
      attempts += 1;
      const script = compiledScript(new URL("job-kind-script.ts", import.meta.url));
      const child = spawn(process.execPath, [script, home, kind, jobId, String(attempts)], {
        stdio: ["ignore", "ignore", "inherit"],
      });
      children.push(child);
      return child;
    },
    content: async (name) => await readFile(join(cwd, name), "utf8").catch(() => ""),
    write: async (name, text = "") => await writeFile(join(cwd, name), text),
  };
}

export function outcomeOf(end: FollowedEnd): JobOutcome {
  if (end.kind !== "ended") throw new Error(`expected an end, got ${end.why}`);
  return end.outcome;
}
