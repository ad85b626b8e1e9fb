import type { JobEntry, JobOffsets, JobStreamRead, StoredOutput } from "../contracts/jobs.js";
import { droppedOutput, incompleteOutput } from "./job-texts.js";
import { isLive, offsetOf, type JobRecord } from "./jobs.js";

/** What a read yields: text, and for a streaming job how far the cursor moves when its result is logged (J15). */
export interface JobDelta {
  readonly text: string;
  readonly offsets?: JobOffsets;
}

/** Where the text of a read comes from, as of now. */
export type ReadPlan =
  | { readonly from: "here"; readonly delta: JobDelta }
  /** The `output` of the entry `job/settled` of this `seq`. */
  | { readonly from: "entry"; readonly seq: number }
  | { readonly from: "store"; readonly ref: StoredOutput }
  /** Its streams, each from this offset (0 when it has none). */
  | { readonly from: "streams"; readonly offsets: JobOffsets };

/** How to read a job: nothing is read of a live final-output job, and a short ended one needs no activity. */
export function planRead(job: JobRecord): ReadPlan {
  if (job.form === "final" && isLive(job)) return { from: "here", delta: { text: "" } };
  const { output } = job;
  switch (output?.at) {
    case "nowhere":
      return { from: "here", delta: { text: "" } };
    case "here":
      return { from: "here", delta: { text: output.text } };
    case "entry":
      return { from: "entry", seq: output.seq };
    case "store":
      return { from: "store", ref: output.ref };
    case "streams":
      return planTails(job, output.tails) ?? { from: "streams", offsets: job.offsets };
    case undefined:
      return { from: "streams", offsets: job.offsets };
  }
}

/**
 * One text of several streams (spec/jobs §9): the first as it is, of each other a `[<stream>]` line and its text; then, once,
 * a line when unread bytes were dropped, and lines that the job's host adds.
 */
export function joinStreams(
  reads: readonly JobStreamRead[],
  {
    locators = [],
    notes = [],
  }: {
    readonly locators?: readonly string[];
    readonly notes?: readonly string[];
  } = {},
): JobDelta {
  let text = "";
  for (const [index, read] of reads.entries()) {
    if (index === 0) text = read.text;
    else if (read.text !== "") text = `${withNewline(text)}[${read.stream}]\n${read.text}`;
  }
  if (reads.some((read) => read.dropped === true)) text = addLine(text, droppedOutput(locators));
  for (const note of notes) text = addLine(text, note);
  return { text, offsets: Object.fromEntries(reads.map((read) => [read.stream, read.to])) };
}

/** The text a read shows of a job: the delta, and a line when its worker was lost. */
export function deltaText(job: JobRecord, delta: JobDelta): string {
  return job.lost === true ? addLine(delta.text, incompleteOutput) : delta.text;
}

/** What a read logs with its result: the cursor, and that an ended job was collected. */
export function readEntries(job: JobRecord, { offsets = {} }: JobDelta): readonly JobEntry[] {
  const { id } = job;
  const moved = Object.entries(offsets).filter(([stream, to]) => to > offsetOf(job, stream));
  return [
    ...(moved.length === 0
      ? []
      : [{ type: "job/cursor" as const, data: { id, offsets: Object.fromEntries(moved) } }]),
    ...(isLive(job) || job.reported
      ? []
      : [{ type: "job/reported" as const, data: { id, by: "read" as const } }]),
  ];
}

/** From the tails that came with the settlement, when the cursor stands at their start or at their end. */
function planTails(
  job: JobRecord,
  tails: Extract<JobRecord["output"], { at: "streams" }>["tails"],
): ReadPlan | undefined {
  if (tails === undefined) return undefined;
  const reads: JobStreamRead[] = [];
  for (const { stream, from, to, text } of tails) {
    const at = offsetOf(job, stream);
    if (at !== from && at < to) return undefined;
    reads.push({ stream, text: at < to ? text : "", to });
  }
  return { from: "here", delta: joinStreams(reads) };
}

function addLine(text: string, line: string): string {
  return `${withNewline(text)}${line}`;
}

function withNewline(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}
