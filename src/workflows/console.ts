import { defineSearchAttributeKey } from "@temporalio/common";
import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from "@temporalio/workflow";
import type { SearchAttributeName } from "../contracts/names.js";
import type { SessionInput } from "../contracts/session.js";
import { currentDetails, detailsHeading, type LocalTimeText } from "../domain/details.js";
import { isLive } from "../domain/jobs.js";
import { nextReminder } from "../domain/schedule-views.js";
import type { Session } from "../domain/session.js";

/** What Temporal UI shows of a session (design D13). */
export interface Console {
  /** Current details; costs no history. `begun`: the work that has just begun, shown until the state changes. */
  readonly show: (begun?: string) => void;
  /** Search attributes, upserted only when they change and only where they are registered. */
  readonly publish: (state: string) => void;
  /** The number of open jobs alone, also in a turn. */
  readonly count: () => void;
  /** The published state is not the session's any more. */
  readonly isStale: () => boolean;
}

export function createConsole(session: Session, input: SessionInput): Console {
  const carried = input.checkpoint === undefined ? undefined : carriedAttributes();
  const published = carried?.published ?? { LonghaulState: "idle", LonghaulOpenJobs: 0 };
  let doing: string | undefined;
  let nextAt = carried?.nextAt;
  function changes(name: SearchAttributeName, value: string | number | undefined): boolean {
    return value !== undefined && published[name] !== value && input.attributes.includes(name);
  }
  function upsert(name: SearchAttributeName, value: string | number | undefined): void {
    if (value === undefined || !changes(name, value)) return;
    published[name] = value;
    upsertSearchAttributes([
      typeof value === "number"
        ? { key: defineSearchAttributeKey(name, "INT"), value }
        : { key: defineSearchAttributeKey(name, "KEYWORD"), value: value.slice(0, 1_000) },
    ]);
  }
  const openJobs = (): number => session.folds.jobs.jobs.filter(isLive).length;
  const nextReminderAt = (): string | undefined =>
    input.attributes.includes("LonghaulNextReminder")
      ? nextReminder(session.folds.schedule)?.scheduledAt
      : undefined;
  /** The next reminder's time, also where it changes without a turn; none: the attribute goes. */
  function remind(): void {
    const next = nextReminderAt();
    if (next === nextAt) return;
    nextAt = next;
    upsertSearchAttributes([
      {
        key: defineSearchAttributeKey("LonghaulNextReminder", "DATETIME"),
        value: next === undefined ? null : dateOf(next),
      },
    ]);
  }
  function details(): string {
    const state = currentDetails(session, doing, localTimeOf(session));
    return input.checkpoint === undefined
      ? state
      : `${detailsHeading(session, input.title)}\n\n${state}`;
  }
  return {
    show(begun) {
      doing = begun ?? doing;
      setCurrentDetails(details());
    },
    publish(state) {
      upsert("LonghaulState", state);
      upsert("LonghaulHost", session.folds.place.host);
      upsert("LonghaulOpenJobs", openJobs());
      remind();
      doing = undefined;
      setCurrentDetails(details());
    },
    count() {
      upsert("LonghaulOpenJobs", openJobs());
      remind();
    },
    isStale: () =>
      changes("LonghaulState", session.state()) ||
      changes("LonghaulOpenJobs", openJobs()) ||
      nextReminderAt() !== nextAt,
  };
}

/** What the run before has published: the attributes of a workflow go on in its next run. */
function carriedAttributes(): {
  readonly published: { [name in SearchAttributeName]?: string | number };
  readonly nextAt: string | undefined;
} {
  const { typedSearchAttributes: attributes } = workflowInfo();
  const next = attributes.get(defineSearchAttributeKey("LonghaulNextReminder", "DATETIME"));
  const texts = ["LonghaulState", "LonghaulHost"] as const;
  return {
    published: {
      ...Object.fromEntries(
        texts.map((name) => [name, attributes.get(defineSearchAttributeKey(name, "KEYWORD"))]),
      ),
      LonghaulOpenJobs: attributes.get(defineSearchAttributeKey("LonghaulOpenJobs", "INT")) ?? 0,
    },
    nextAt: next?.toISOString(),
  };
}

/** A time with an explicit zone, for people; it is shown and never decides anything (design D11). */
function localTimeOf(session: Session): LocalTimeText {
  return (instant) => {
    const zone = session.log.entries.findLast(
      (entry) =>
        entry.type === "user/message" && entry.data.message.source["timeZone"] !== undefined,
    );
    const timeZone =
      zone?.type === "user/message"
        ? zone.data.message.source["timeZone"]
        : session.recall.userZone;
    if (timeZone === undefined) return undefined;
    try {
      const format = new Intl.DateTimeFormat("en-GB", {
        dateStyle: "medium",
        timeStyle: "short",
        timeZone,
      });
      return `${format.format(dateOf(instant))} ${timeZone}`;
    } catch {
      return undefined;
    }
  };
}

function dateOf(instant: string): Date {
  return new Date(Date.parse(instant));
}
