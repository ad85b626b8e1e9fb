import type { LogEntry } from "../../src/contracts/log.js";
import { noticeId } from "../../src/domain/job-notices.js";

/** How a job's end reached the model: by a notice of some lane, or by a call of the model that waited for it or killed it. */
export type JobEndTold = "wake" | "inject" | "owed" | "collected" | "killed";

export interface JobEnds {
  readonly told: ReadonlyMap<string, JobEndTold>;
  readonly problems: readonly string[];
}

/**
 * Reads from a log alone how often each job's end was told, with rules of its own: settled once; announced once, and shown
 * once, when it was not told otherwise; not announced when it was; no more wakes in a row than the budget allows.
 */
export function readJobEnds(log: readonly LogEntry[], maxConsecutiveWakes: number): JobEnds {
  const problems: string[] = [];
  const told = new Map<string, JobEndTold>();
  const started = log.flatMap((one) => (one.type === "job/start" ? [one.data.id] : []));
  for (const id of started) {
    const settled = log.filter((one) => one.type === "job/settled" && one.data.id === id);
    const [end] = settled;
    if (settled.length !== 1 || end?.type !== "job/settled") {
      problems.push(`${id}: settled ${settled.length} times`);
      continue;
    }
    const announced = log
      .flatMap((one) => (one.type === "agent/inbox/spliced" ? one.data.inserted : []))
      .filter((message) => message.id === noticeId(id)).length;
    const shown = log.filter(
      (one) => one.type === "user/message" && one.data.message.id === noticeId(id),
    ).length;
    const collected = log.some(
      (one) =>
        one.type === "tool/result" &&
        one.seq > end.seq &&
        one.data.meta?.["jobId"] === id &&
        one.data.meta["status"] === end.data.status,
    );
    const killed = log.some((one) => one.type === "job/stopping" && one.data.id === id);
    const { lane } = end.data;
    const times = lane === undefined ? 0 : 1;
    if (announced !== times || shown !== times)
      problems.push(`${id}: lane ${lane ?? "none"}, announced ${announced}, shown ${shown} times`);
    if (lane === undefined && !collected && !killed) problems.push(`${id}: nobody was told`);
    told.set(id, lane ?? (killed ? "killed" : "collected"));
  }
  let wakes = 0;
  for (const one of log) {
    if (one.type === "user/message" && one.data.message.source.kind === "user") wakes = 0;
    const woke =
      one.type === "job/woken" || (one.type === "job/settled" && one.data.lane === "wake");
    if (woke && (wakes += 1) > maxConsecutiveWakes)
      problems.push(`entry ${one.seq}: wake ${wakes} in a row, allowed are ${maxConsecutiveWakes}`);
  }
  return { told, problems };
}
