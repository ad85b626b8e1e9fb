import { describe, expect, it } from "vitest";
import type { ReadTimeInput } from "../../src/contracts/activities.js";
import { sendMessage } from "../../src/domain/commands.js";
import { timeContextProblem } from "../../src/domain/time-context-config.js";
import { timeReading } from "../../src/time/reading.js";
import {
  calls,
  entriesOf,
  openSession,
  output,
  row,
  run,
  saying,
} from "../support/session-script.js";

const now = Date.parse("2026-07-15T01:01:01.250Z");
const base = { now, turn: 1, step: 1, zones: [] } as const;

describe("a reading of the time", () => {
  it("says turn and step, the time in the one zone of the messages, and how to read times without a zone", () => {
    expect(
      timeReading({ ...base, turn: 3, step: 2, zones: ["asia/shanghai"], sinceMs: 90_061_000 }),
    ).toBe(
      [
        "turn 3, step 2",
        "time: 2026-07-15T09:01:01+08:00[Asia/Shanghai]",
        "time zone: times that name none are in Asia/Shanghai",
        "since the previous reading: 1d 1h 1m 1s",
      ].join("\n"),
    );
  });

  it.each([
    [[], "+00:00[UTC]", "the user's is not known; ask"],
    [["Europe/Berlin", "Asia/Tokyo"], "+00:00[UTC]", "several (Asia/Tokyo, Europe/Berlin); ask"],
    [["No/Where"], "+00:00[UTC]", "times that name none are in No/Where"],
  ])("with the zones %j stands in UTC and tells what is known", (zones, time, policy) => {
    const text = timeReading({ ...base, zones });
    expect(text).toContain(`01:01:01${time}`);
    expect(text).toContain(policy);
  });

  it.each([
    [undefined, "unavailable"],
    [0, "0s"],
    [999, "0s"],
    [61_000, "1m 1s"],
    [3_600_000, "1h 0m 0s"],
    [172_800_000, "2d 0h 0m 0s"],
  ])("tells %j ms as %s", (sinceMs, told) => {
    const input: ReadTimeInput = { ...base, ...(sinceMs === undefined ? {} : { sinceMs }) };
    expect(timeReading(input).split("\n").at(-1)).toBe(`since the previous message: ${told}`);
  });
});

describe("the time for the model", () => {
  function played(timeContext: boolean | { readonly refreshIntervalMs: number }) {
    const session = openSession({ timeContext }, [row("t")]);
    const asked: ReadTimeInput[] = [];
    const send = (id: string, timeZone: string): void =>
      void sendMessage(session, { id, mode: "followup", content: id, timeZone });
    send("a", "Europe/Berlin");
    run(session, {
      model: saying(calls("t"), calls("t")),
      tools: { t: () => output("done") },
      time: (input) => {
        asked.push(input);
        return `reading ${asked.length}`;
      },
      at: (effect, { session: here }) => {
        if (effect.kind === "start" && effect.op.kind === "tool" && here.folds.turn.step === 1)
          sendMessage(here, { id: "b", mode: "steer", content: "b", timeZone: "Asia/Tokyo" });
      },
    });
    const shown = entriesOf(session, "user/message").map(({ data }) => data.message);
    return { asked, shown };
  }

  it("comes with each step, after what the step claims, with the zones of the turn's messages", () => {
    const { asked, shown } = played(true);
    expect(shown.map(({ id }) => id)).toEqual(["a", "time/1.1", "b", "time/1.2", "time/1.3"]);
    expect(shown[1]).toMatchObject({
      source: { kind: "plugin", name: "time-context" },
      content: [{ text: "reading 1" }],
    });
    expect(asked.map(({ turn, step, zones }) => [turn, step, zones])).toEqual([
      [1, 1, ["Europe/Berlin"]],
      [1, 2, ["Asia/Tokyo", "Europe/Berlin"]],
      [1, 3, ["Asia/Tokyo", "Europe/Berlin"]],
    ]);
    expect(asked[0]?.sinceMs).toBeUndefined();
    expect(asked[1]?.sinceMs).toBeGreaterThan(0);
  });

  it("comes once in its interval, and never where it is off", () => {
    expect(played({ refreshIntervalMs: 3_600_000 }).asked).toHaveLength(1);
    expect(played({ refreshIntervalMs: 0 }).asked).toHaveLength(3);
    expect(played(false)).toMatchObject({ asked: [], shown: [{ id: "a" }, { id: "b" }] });
  });

  it("is left out when nobody can read it", () => {
    const session = openSession({ timeContext: true });
    sendMessage(session, { id: "a", mode: "followup", content: "a" });
    run(session);
    expect(entriesOf(session, "user/message").map(({ data }) => data.message.id)).toEqual(["a"]);
  });

  it.each([true, false, undefined, { refreshIntervalMs: 0 }])(
    "may be configured as %j",
    (value) => {
      expect(timeContextProblem(value)).toBeUndefined();
    },
  );

  it.each([
    1,
    "on",
    {},
    { refreshIntervalMs: -1 },
    { refreshIntervalMs: 1.5 },
    { refreshIntervalMs: 1, x: 1 },
  ])("may not be configured as %j", (value) => {
    expect(timeContextProblem(value)).toContain("`timeContext`");
  });
});
