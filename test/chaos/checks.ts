import { DefaultLogger, Runtime, Worker } from "@temporalio/worker";
import { noSinks } from "../support/no-sinks.js";
import { compareRequests } from "../support/witness.js";
import { compareWithHistory, readHistory } from "../support/witness-history.js";
import { entriesOf, notOnce, type Evidence } from "./evidence.js";
import type { Site } from "./site.js";
import { checkTools } from "./tool-checks.js";
import type { Trial } from "./trial.js";

/** Everything that is not as it should be, one line each; empty when the session came through whole. */
export async function findProblems(trial: Trial, evidence: Evidence): Promise<string[]> {
  const { site, id } = trial;
  return [
    ...checkLog(evidence),
    ...checkReplayedLog(evidence),
    ...checkMessages(trial, evidence),
    ...checkReplies(trial, evidence),
    ...checkTools(trial, evidence),
    ...checkModelCalls(trial, evidence),
    ...checkWatcher(trial, evidence),
    ...compareWithHistory(evidence.log, readHistory([evidence.history])),
    ...evidence.alive.map((line) => `still alive: ${line}`),
    ...site.worker.surprises.splice(0),
    ...site.server.surprises.splice(0),
    ...(await replayProblems(site, id)),
  ];
}

function checkLog(evidence: Evidence): string[] {
  const gaps = evidence.log.flatMap(({ seq }, index) =>
    seq === index ? [] : [`entry ${index} of the log has seq ${seq}`],
  );
  const starts = entriesOf(evidence, "turn/start").map(({ data }) => String(data.turn));
  const ends = entriesOf(evidence, "turn/end");
  const broken = ends
    .filter(({ data }) => data.reason.kind !== "completed")
    .map(({ data }) => `turn ${data.turn} ended ${JSON.stringify(data.reason)}`);
  const turns = starts.length === 0 ? ["no turn was started"] : [];
  return [
    ...gaps,
    ...turns,
    ...broken,
    ...notOnce(
      "end of turn",
      starts,
      ends.map(({ data }) => String(data.turn)),
    ),
  ];
}

/** The history alone gives the same log again, byte for byte (design D1). */
function checkReplayedLog({ log, replayed }: Evidence): string[] {
  return Array.from({ length: Math.max(log.length, replayed.length) }, (_, seq) => {
    const [before, after] = [JSON.stringify(log[seq]), JSON.stringify(replayed[seq])];
    return before === after ? [] : [`entry ${seq} was ${before}, after a replay it is ${after}`];
  }).flat();
}

/** Every message sent stands in the transcript once, and was put in the inbox once. */
function checkMessages(trial: Trial, evidence: Evidence): string[] {
  const sent = trial.sends.map(({ id, text }) => `${id} ${JSON.stringify(text)}`);
  const said = entriesOf(evidence, "user/message")
    .map(({ data }) => data.message)
    .filter(({ source }) => source.kind === "user")
    .map(
      ({ id, content }) =>
        `${id} ${JSON.stringify(content.map((block) => ("text" in block ? block.text : "")).join(""))}`,
    );
  const inserted = entriesOf(evidence, "agent/inbox/spliced")
    .flatMap(({ data }) => data.inserted)
    .filter(({ source }) => source.kind === "user")
    .map(({ id }) => id);
  const ids = evidence.log.flatMap((entry) =>
    "message" in entry.data && typeof entry.data.message === "object"
      ? [entry.data.message.id]
      : [],
  );
  return [
    ...notOnce("message", sent, said),
    ...notOnce(
      "insertion of message",
      trial.sends.map(({ id }) => id),
      inserted,
    ),
    ...notOnce("message id", [...new Set(ids)], ids),
  ];
}

/** Each step has one reply, letter for letter the scripted one. */
function checkReplies(trial: Trial, evidence: Evidence): string[] {
  const { script } = trial;
  const turns = new Set(entriesOf(evidence, "turn/start").map(({ data }) => data.turn));
  const scripted = script.steps.filter(({ turn }) => turns.has(turn));
  const replies = entriesOf(evidence, "assistant/message").map(({ data }) => {
    const text = data.message.content
      .map((block) => (block.type === "text" ? block.text : ""))
      .join("");
    const calls = data.message.content.flatMap((block) =>
      block.type === "tool-call" ? [block.callId] : [],
    );
    return { place: `${data.turn}.${data.step}`, text, calls };
  });
  const places = new Set(scripted.map(({ turn, step }) => `${turn}.${step}`));
  const further = replies.filter(({ place }) => !places.has(place));
  const name = (place: string, text: string, calls: readonly string[]): string =>
    `${place} ${JSON.stringify(text)} [${calls.join(" ")}]`;
  return [
    ...notOnce(
      "reply",
      [
        ...scripted.map(({ turn, step, text, calls }) =>
          name(
            `${turn}.${step}`,
            text,
            calls.map(({ callId }) => callId),
          ),
        ),
        ...new Set(further.map(({ place }) => name(place, script.echo, []))),
      ],
      replies.map(({ place, text, calls }) => name(place, text, calls)),
    ),
  ];
}

/** What the model was shown is what the log says, and it was asked again only because of a blow. */
function checkModelCalls(trial: Trial, evidence: Evidence): string[] {
  const { witnessed, recorded } = evidence;
  const replies = entriesOf(evidence, "assistant/message").length;
  const extra = recorded.length - witnessed.length;
  const problems = compareRequests(witnessed, recorded);
  if (replies !== witnessed.length)
    problems.push(`${replies} replies, but the log asks for ${witnessed.length}`);
  if (extra < 0 || extra > trial.blows.length)
    problems.push(
      `${recorded.length} model calls for ${replies} replies and ${trial.blows.length} blows`,
    );
  return problems;
}

/** A user who watched all the time saw every entry once, in order, and the text of every reply. */
function checkWatcher(trial: Trial, evidence: Evidence): string[] {
  const problems: string[] = [];
  let next = 0;
  let text = "";
  for (const event of trial.watched) {
    if (event.type === "delta" && event.kind === "text") text += event.text;
    else if (event.type === "restart") text = "";
    else if (event.type === "entry") {
      const { entry } = event;
      if (entry.seq !== next)
        problems.push(`the watcher saw entry ${entry.seq} instead of ${next}`);
      next = entry.seq + 1;
      if (entry.type !== "assistant/message") continue;
      const said = entry.data.message.content
        .map((block) => (block.type === "text" ? block.text : ""))
        .join("");
      if (text !== said)
        problems.push(
          `the watcher of ${entry.data.turn}.${entry.data.step} saw ${JSON.stringify(text)}, the reply is ${JSON.stringify(said)}`,
        );
      text = "";
    }
  }
  if (next !== evidence.log.length)
    problems.push(`the watcher saw ${next} of ${evidence.log.length} entries`);
  return problems;
}

let quiet = false;

/** The runtime is one per process; replays tell nothing on the terminal. */
function quietRuntime(): void {
  if (quiet) return;
  quiet = true;
  Runtime.install({ logger: new DefaultLogger("ERROR") });
}

/** Why the history of a session does not replay; empty when it does. */
export async function replayProblems(site: Site, id: string): Promise<string[]> {
  quietRuntime();
  const history = await site.temporal.workflow.getHandle(id).fetchHistory();
  try {
    await Worker.runReplayHistory(
      { workflowBundle: { codePath: site.bundlePath }, sinks: noSinks },
      history,
      id,
    );
    return [];
  } catch (error) {
    return [`its history does not replay: ${String(error)}`];
  }
}
