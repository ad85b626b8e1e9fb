import type { EntryOf } from "../../src/contracts/log.js";
import { entriesOf, notOnce, type Evidence } from "./evidence.js";
import type { ExpectedCall } from "./script.js";
import type { Blow, Trial } from "./trial.js";

type ToolResult = EntryOf<"tool/result">;

/** One result for each call; true, or an error that a blow explains; nothing ran twice, nothing went on. */
export function checkTools(trial: Trial, evidence: Evidence): string[] {
  const turns = new Set(entriesOf(evidence, "turn/start").map(({ data }) => data.turn));
  const calls = trial.script.steps
    .filter(({ turn }) => turns.has(turn))
    .flatMap((step) => step.calls);
  const called = entriesOf(evidence, "tool/call");
  const results = entriesOf(evidence, "tool/result");
  const ids = calls.map(({ callId }) => callId);
  return [
    ...notOnce(
      "call",
      ids,
      called.map(({ data }) => data.callId),
    ),
    ...notOnce("result of", ids, results.map(callIdOf)),
    ...calls.flatMap((call) => {
      const begin = called.find(({ data }) => data.callId === call.callId);
      const result = results.find((one) => callIdOf(one) === call.callId);
      if (begin === undefined || result === undefined) return [];
      return [
        ...(result.sourceEventSeqs?.includes(begin.seq) === true
          ? []
          : [`the result of ${call.callId} does not cite its call`]),
        ...checkResult(trial, evidence, call, begin, result),
        ...checkRuns(evidence, call, result),
        ...checkFiles(evidence, call, result),
      ];
    }),
    ...checkEnding(trial, evidence, results),
    ...evidence.files.filter((name) => name.endsWith(".tmp")).map((name) => `left behind: ${name}`),
  ];
}

function callIdOf({ data }: ToolResult): string {
  const [block] = data.message.content;
  return block?.type === "tool-result" ? block.callId : "?";
}

function textOf({ data }: ToolResult): string {
  const [block] = data.message.content;
  return block?.type === "tool-result" ? block.content.map(({ text }) => text).join("") : "";
}

/** A true result, or an error during whose call a blow fell that can have caused it. */
function checkResult(
  trial: Trial,
  { settledAt }: Evidence,
  call: ExpectedCall,
  begin: EntryOf<"tool/call">,
  result: ToolResult,
): string[] {
  const { error } = result.data;
  if (error === undefined) {
    return call.result.test(textOf(result))
      ? []
      : [`${call.callId} answered ${JSON.stringify(textOf(result))}`];
  }
  const end = settledAt.get(call.claim) ?? 0;
  const blows = trial.blows.filter(({ from, to }) => from <= end && to >= begin.time);
  if (blows.some((blow) => explains(blow, error.code, call))) return [];
  return [`${call.callId} ended ${error.code} (${textOf(result)}) for no reason`];
}

function explains(blow: Blow, code: string, call: ExpectedCall): boolean {
  // What may be run again is, until it has a true result.
  if (call.tool === "read") return false;
  if (code === "TOOL_OUTCOME_UNKNOWN") return true;
  // The worker woke before anyone missed it, and says itself that the watch ended the command.
  return blow.kind === "worker frozen" && call.tool === "bash" && code === "TOOL_FAILED";
}

function checkRuns(evidence: Evidence, call: ExpectedCall, result: ToolResult): string[] {
  if (call.tool !== "bash") return [];
  const count = (what: string): number =>
    evidence.runs.filter((line) => line === `${what} ${call.claim}`).length;
  const [starts, ends] = [count("start"), count("end")];
  const whole = result.data.error === undefined;
  if (whole ? starts === 1 && ends === 1 : starts <= 1 && ends <= starts) return [];
  return [
    `${call.callId} (${whole ? "a true result" : "an error"}) was started ${starts} times and ended ${ends} times`,
  ];
}

/** The file of a command stands still before its error is logged. */
function checkFiles(evidence: Evidence, call: ExpectedCall, result: ToolResult): string[] {
  const last = evidence.beats.get(call.claim)?.at(-1);
  const end = evidence.settledAt.get(call.claim) ?? 0;
  const code = result.data.error?.code;
  if (code === undefined || last === undefined || last < end) return [];
  return [`${call.callId} appended ${last - end} ms after history had its ${code}`];
}

/** A command that was held when its worker was killed or frozen was ended by force, with one error as its result. */
function checkEnding(trial: Trial, evidence: Evidence, results: readonly ToolResult[]): string[] {
  return trial.blows
    .filter(({ kind, moment }) => kind !== "server killed" && moment.window === "tool running")
    .flatMap(({ kind, moment }) =>
      moment.claims.flatMap((claim) => {
        const result = results.find((one) => claim.endsWith(`.${callIdOf(one)}`));
        if (!evidence.beats.has(claim)) return [];
        const problems: string[] = [];
        if (result?.data.error === undefined)
          problems.push(`${kind} during ${claim}, but it has no error`);
        if (evidence.runs.includes(`end ${claim}`))
          problems.push(`${kind} during ${claim}, but it ran to its end`);
        return problems;
      }),
    );
}
