import { defineSearchAttributeKey } from "@temporalio/common";
import { setCurrentDetails, upsertSearchAttributes } from "@temporalio/workflow";
import type { SearchAttributeName } from "../contracts/names.js";
import type { SessionInput } from "../contracts/session.js";
import { currentDetails } from "../domain/details.js";
import type { Session } from "../domain/session.js";

/** What Temporal UI shows of a session (design D13). */
export interface Console {
  /** Current details; costs no history. `begun`: the work that has just begun, shown until the state changes. */
  readonly show: (begun?: string) => void;
  /** Search attributes, upserted only when they change and only where they are registered. */
  readonly publish: (state: string) => void;
  /** The published state is not the session's any more. */
  readonly isStale: () => boolean;
}

export function createConsole(session: Session, input: SessionInput): Console {
  const published: { [name in SearchAttributeName]?: string } = { LonghaulState: "idle" };
  let doing: string | undefined;
  function upsert(name: SearchAttributeName, value: string | undefined): void {
    if (value === undefined || published[name] === value || !input.attributes.includes(name))
      return;
    published[name] = value;
    upsertSearchAttributes([
      { key: defineSearchAttributeKey(name, "KEYWORD"), value: value.slice(0, 1_000) },
    ]);
  }
  return {
    show(begun) {
      doing = begun ?? doing;
      setCurrentDetails(currentDetails(session, doing));
    },
    publish(state) {
      upsert("LonghaulState", state);
      upsert("LonghaulHost", session.folds.place.host);
      doing = undefined;
      setCurrentDetails(currentDetails(session, doing));
    },
    isStale: () =>
      input.attributes.includes("LonghaulState") && published.LonghaulState !== session.state(),
  };
}
