import type { ToolCallBlock } from "../../src/contracts/content.js";
import type { ToolRow } from "../../src/contracts/tools.js";
import { builtinPolicy, type SessionPolicy } from "../../src/domain/policy.js";
import type { Session } from "../../src/domain/session.js";
import { JobsInSession, openJobSession } from "./jobs-in-session.js";
import { PureRun, type Script } from "./pure-driver.js";
import { calls, entriesOf, resultTexts, row, saying, send } from "./session-script.js";

/** A call of a tool with these arguments, for `calls`. */
export function call(name: string, args: unknown): Partial<ToolCallBlock> {
  return { name, arguments: JSON.stringify(args) };
}

/** A tool whose calls may run in the background as jobs of the kind. */
export function backgroundRow(jobKind = "bash", more: Partial<ToolRow> = {}): ToolRow {
  return row("bash", {
    jobKind,
    parameters: {
      type: "object",
      properties: {
        command: { type: "string" },
        run_in_background: { type: "boolean" },
      },
      required: ["command"],
    },
    ...more,
  });
}

/** The host's side of the job tools: what each job has printed to stdout so far, in ASCII. */
export class JobOutputs {
  readonly printed = new Map<string, string>();
  /** Where each read began. */
  readonly reads: number[] = [];

  readonly answer: NonNullable<Script["jobs"]> = ({ work, cancelled }) => {
    if (work.do !== "read") return { kind: "done" };
    if (cancelled) return { kind: "failed", code: "ABORTED", message: "the read was given up" };
    const from = work.plan.from === "streams" ? (work.plan.offsets["stdout"] ?? 0) : 0;
    this.reads.push(from);
    const all = this.printed.get(work.job) ?? "";
    return {
      kind: "read",
      reads: [{ stream: "stdout", text: all.slice(from), to: all.length }],
      locators: [],
    };
  };
}

let prompts = 0;

/** One turn whose replies are these calls, one step each, then `ok`. Gives the texts of its results. */
export function playCalls(
  session: Session,
  steps: readonly (readonly Partial<ToolCallBlock>[])[],
  script: Omit<Script, "model"> = {},
): { readonly texts: readonly string[]; readonly run: PureRun } {
  const before = resultTexts(session).length;
  send(session, "followup", `prompt ${(prompts += 1)}`);
  const replies = saying(...steps.map((made) => calls(...made)));
  const model: NonNullable<Script["model"]> = ({ cancelled }) =>
    cancelled ? { kind: "cancelled", content: [] } : replies();
  const run = new PureRun(session, { jobs: new JobOutputs().answer, ...script, model });
  run.untilIdle();
  return { texts: resultTexts(session).slice(before), run };
}

/** A session with one live job of a kind; `tight` jobs have a limit of 64 bytes, `tiny` ones of 8. */
export function withJob(kind = "bash", printed = "", jobs = {}) {
  const session = openJobSession([row("t")], jobs);
  const { epoch, tools, jobKinds } = session.folds.place;
  session.record({
    type: "session/tools",
    data: {
      epoch,
      tools,
      jobKinds: [...jobKinds, { kind: "tiny", output: "stream", outputLimitBytes: 8 }],
    },
  });
  const host = new JobOutputs();
  const world = new JobsInSession(session);
  const id = world.start(kind);
  host.printed.set(id, printed);
  const read = (more: object = {}) => call("job_output", { job_id: id, ...more });
  const kill = (more: object = {}) => call("job_kill", { job_id: id, ...more });
  return { session, world, host, id, read, kill, jobs: host.answer };
}

/** Types of the job entries, in order. */
export function jobEntries(session: Session): readonly string[] {
  return session.log.entries.map(({ type }) => type).filter((type) => type.startsWith("job/"));
}

/** The built-in policy with some stages of its own. */
export function policyWith(stages: Partial<SessionPolicy>): SessionPolicy {
  return { ...builtinPolicy, ...stages };
}

/** The codes of the error results, in order; `undefined` for a good one. */
export function resultCodes(session: Session): readonly (string | undefined)[] {
  return entriesOf(session, "tool/result").map(({ data }) => data.error?.code);
}

export function recordOf({ session }: JobsInSession, id: string) {
  const job = session.folds.jobs.jobs.find((one) => one.id === id);
  if (job === undefined) throw new Error(`no job ${id}`);
  return job;
}
