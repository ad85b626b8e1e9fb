import type { ReadTimeInput } from "../contracts/activities.js";
import type { UserMessage } from "../contracts/content.js";
import { runOne, type Loop } from "./effects.js";
import { pluginMessage, type Session } from "./session.js";
import { isReplacement } from "./surface.js";

const timeContextName = "time-context";

/** The reading of this step (spec/schedule §8): none when it is off, when one is still fresh, or when nobody could give it. */
export function* readTime(session: Session, step: number): Loop<readonly UserMessage[]> {
  const { timeContext } = session.config;
  if (timeContext === undefined || timeContext === false) return [];
  const refreshMs = timeContext === true ? 0 : timeContext.refreshIntervalMs;
  const { log, recall } = session;
  const isReading = ({ source }: { readonly source: UserMessage["source"] }): boolean =>
    source["name"] === timeContextName;
  const reading = log.entries.findLast(
    (entry) => entry.type === "user/message" && isReading(entry.data.message),
  );
  const readingAt = reading?.time ?? recall.readingAt;
  if (readingAt !== undefined && session.now - readingAt < refreshMs) return [];
  const turn = session.folds.turn.number;
  const shown = log.entries.findLast(
    (entry) =>
      (entry.type === "user/message" && !isReplacement(entry)) ||
      entry.type === "assistant/message",
  );
  const since = step > 1 ? readingAt : (shown?.time ?? recall.shownAt);
  const input: ReadTimeInput = {
    now: session.now,
    turn,
    step,
    zones: zonesOf(session),
    ...(since === undefined ? {} : { sinceMs: Math.max(0, session.now - since) }),
  };
  const key = `time/${turn}.${step}`;
  const settled = yield* runOne({ kind: "time", key, input }, () => session.aborting);
  if (settled.kind !== "time" || settled.text === undefined) return [];
  return [pluginMessage(key, timeContextName, settled.text)];
}

/** Zones that the user messages of the open turn name, also those that this step is about to claim. */
function zonesOf(session: Session): readonly string[] {
  const { entries } = session.log;
  const from = entries.findLastIndex(({ type }) => type === "turn/start");
  const claimed = entries
    .slice(Math.max(0, from))
    .flatMap((entry) => (entry.type === "user/message" ? [entry.data.message] : []));
  const before = from === -1 ? session.recall.turnZones : [];
  const { nextStep, nextTurn } = session.folds.inbox;
  const coming = session.folds.turn.step === 0 ? nextTurn.slice(0, 1) : [];
  const zones = [...claimed, ...nextStep, ...coming].flatMap(({ source }) =>
    source.kind === "user" && source["timeZone"] !== undefined ? [source["timeZone"]] : [],
  );
  return [...new Set([...before, ...zones])].toSorted();
}
