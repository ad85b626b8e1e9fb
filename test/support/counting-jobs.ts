import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { SessionClient } from "../../src/client/session-client.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { JobView } from "../../src/contracts/session.js";
import { noticeId } from "../../src/domain/job-notices.js";
import { spoolDirectory } from "../../src/process/jobs/spool.js";
import { until } from "../chaos/site.js";
import { jobProcesses } from "./job-processes.js";

/** How long anything may take on a busy machine, ms. */
const patienceMs = 60_000;

/** Jobs of one session that print a counter 50 times a second until they are told to stop. */
export interface Counters {
  readonly session: SessionClient;
  readonly ids: readonly string[];
  /** Waits until each running one has counted so much further. */
  advance(by: number): Promise<void>;
  /** Pid of each run of the command, by job: it notes them itself. */
  runs(): Promise<ReadonlyMap<string, readonly number[]>>;
  /** Makes some end by themselves, and waits until their processes are gone. */
  stop(...ids: readonly string[]): Promise<void>;
  /** Stops those that run; then every job must have run once, printed each number once, and be told once. */
  finish(): Promise<readonly JobView[]>;
  /** Living followers of a job, by the pid of their worker. */
  followers(id: string): Promise<readonly { readonly file: string; readonly pid: number }[]>;
  spool(id: string): Promise<string>;
  alive(): Promise<readonly string[]>;
}

export interface CountersOptions {
  readonly session: SessionClient;
  readonly workspace: string;
  /** Of their host. */
  readonly home: string;
  readonly count: number;
  /** Shell text before the counting begins. */
  readonly before?: string;
  /** The session's whole log. */
  readonly read: (session: SessionClient) => Promise<readonly LogEntry[]>;
}

/** Starts them and waits until all count. */
export async function startCounters(options: CountersOptions): Promise<Counters> {
  const { session, workspace, home, count, before = "", read } = options;
  const ids: string[] = [];
  for (let n = 1; n <= count; n += 1) {
    const input = { command: countingCommand(n, before) };
    ids.push((await session.startJob({ kind: "bash", label: `counter ${n}`, input })).id);
  }
  const numberOf = (id: string): number => ids.indexOf(id) + 1;
  const at = async (id: string): Promise<number> =>
    Number(await readFile(join(workspace, `at.${numberOf(id)}`), "utf8").catch(() => ""));
  const view = async (id: string): Promise<JobView> => {
    const found = (await session.jobs()).jobs.find((job) => job.id === id);
    if (found === undefined) throw new Error(`no job ${id}`);
    return found;
  };

  const counters: Counters = {
    session,
    ids,
    async advance(by) {
      const from = await Promise.all(ids.map(at));
      const living = new Set((await jobProcesses(home)).map(({ job }) => job.split("/")[1]));
      assert.notEqual(living.size, 0, "no counting job is left");
      await until(`${living.size} jobs to count ${by} further`, patienceMs, async () => {
        for (const [index, id] of ids.entries())
          if (living.has(id) && (await at(id)) < (from[index] ?? 0) + by) return false;
        return true;
      });
    },
    async runs() {
      const text = await readFile(join(workspace, "runs"), "utf8").catch(() => "");
      const runs = new Map<string, number[]>();
      for (const line of text.split("\n").filter((one) => one !== "")) {
        const [n, pid] = line.split(" ").map(Number);
        const id = ids[(n ?? 0) - 1] ?? line;
        runs.set(id, [...(runs.get(id) ?? []), pid ?? 0]);
      }
      return runs;
    },
    async stop(...which) {
      for (const id of which) await writeFile(join(workspace, `stop.${numberOf(id)}`), "");
      await until(`${which.join(", ")} to end`, patienceMs, async () => {
        const living = (await jobProcesses(home)).map(({ job }) => job.split("/")[1] ?? "");
        return which.every((id) => !living.includes(id));
      });
    },
    async finish() {
      await counters.stop(...ids);
      const ended: JobView[] = [];
      for (const id of ids) ended.push(await session.waitJob(id, { timeoutMs: 60_000 }));
      const runs = await counters.runs();
      for (const job of ended) {
        const n = numberOf(job.id);
        const own = runs.get(job.id) ?? [];
        assert.equal(own.length, 1, `${job.id} has run ${own.length} times`);
        const printed = await linesOf(session, job.id);
        const whole = printed.map((_, index) => `${own[0]} ${index}`);
        assert.deepEqual(printed, whole, `the stored output of ${job.id}`);
        if (job.status !== "completed") continue;
        assert.equal(job.detail, `exit code: ${n}`, job.id);
        assert.equal(printed.length, await at(job.id), `numbers stored of ${job.id}`);
      }
      await checkToldOnce(session, ids, read);
      return ended;
    },
    async spool(id) {
      const nonce = (await view(id)).workflowId.split("/").at(-1) ?? "";
      return spoolDirectory({ home, sessionId: session.id, jobId: id, nonce });
    },
    async followers(id) {
      const directory = await counters.spool(id);
      return readdirSync(directory)
        .filter((name) => name.startsWith("follower."))
        .flatMap((file) => {
          try {
            const { pid } = JSON.parse(readFileSync(join(directory, file), "utf8")) as {
              pid: number;
            };
            return [{ file, pid }];
          } catch {
            return [];
          }
        });
    },
    async alive() {
      return (await jobProcesses(home)).map(({ pid, job, command }) => `${job} ${pid} ${command}`);
    },
  };
  await until("all jobs to count", patienceMs, async () => {
    for (const id of ids) if ((await at(id)) <= 5) return false;
    return true;
  });
  return counters;
}

/** Bash built-ins alone, so that ten of them leave the machine to others. */
function countingCommand(n: number, before: string): string {
  return `mkfifo q.${n} && exec 9<>q.${n} && rm q.${n}
echo "${n} $$" >>runs
${before}
i=0
while [ ! -e stop.${n} ]; do
  echo "$$ $i"; i=$((i + 1)); echo $i >at.${n}
  read -r -t 0.02 -u 9
done
exit ${n}`;
}

async function linesOf(session: SessionClient, id: string): Promise<readonly string[]> {
  const pieces: Uint8Array[] = [];
  let expected = 0;
  for await (const { stream, offset, bytes } of session.jobOutput(id)) {
    assert.deepEqual([stream, offset], ["stdout", expected], `where output of ${id} goes on`);
    expected += bytes.length;
    pieces.push(bytes);
  }
  const text = Buffer.concat(pieces).toString("utf8");
  assert.ok(text === "" || text.endsWith("\n"), `the output of ${id} ends within a line`);
  return text.split("\n").slice(0, -1);
}

/** Each job was settled once and told once, and a turn shows the model what no turn has shown yet. */
async function checkToldOnce(
  session: SessionClient,
  ids: readonly string[],
  read: CountersOptions["read"],
): Promise<void> {
  await session.followup("what became of them?");
  await session.waitIdle();
  const log = await read(session);
  for (const id of ids) {
    const notices = log.filter(
      (entry) => entry.type === "user/message" && entry.data.message.id === noticeId(id),
    );
    const settled = log.filter((entry) => entry.type === "job/settled" && entry.data.id === id);
    assert.deepEqual([notices.length, settled.length], [1, 1], `notices and ends of ${id}`);
  }
}
