import { describe, expect, test } from "vitest";
import type { ModelRoute } from "../../src/contracts/model.js";
import { configure } from "../../src/domain/commands.js";
import { Session } from "../../src/domain/session.js";
import { compareRequests, witnessRequests } from "../support/witness.js";
import { digestFromScratch } from "../support/pure-driver.js";
import {
  calls,
  endsOf,
  entriesOf,
  failure,
  once,
  openSession,
  row,
  run,
  saying,
  send,
  text,
  userTexts,
  waitingFor,
} from "../support/session-script.js";

const headers = (session: Session) => entriesOf(session, "request/header");
const contexts = (session: Session) =>
  entriesOf(session, "request/context").map(({ data }) => data);

describe("the request header", () => {
  test("[harness/H1] two steps without a change log one header, and request 2 extends request 1", () => {
    const session = openSession({ system: "be brief" }, [row("t")]);
    send(session, "followup", "m1");
    const { requests } = run(session, { model: saying(calls("t")) });
    expect(headers(session).map(({ data }) => data.reason)).toEqual(["initial"]);
    const [first, second] = requests;
    expect(second?.messages.slice(0, first?.messages.length)).toEqual(first?.messages);
    expect(second?.messages).toHaveLength(3);
    expect(second).toMatchObject({ system: "be brief", tools: [{}, { name: "t" }] });
  });

  test("[harness/H2] a model switched by the request policy logs one change, and the next request uses it", () => {
    const session = openSession();
    for (const id of ["m1", "m2", "m3"]) send(session, "followup", id);
    const { requests } = run(session, {
      policy: { request: ({ turn }, given) => ({ ...given, model: turn === 1 ? "m" : "other" }) },
    });
    expect(headers(session).map(({ data }) => [data.reason, data.header.config.model])).toEqual([
      ["initial", "m"],
      ["change", "other"],
    ]);
    expect(requests.map((request) => (request.config as { model: string }).model)).toEqual([
      "m",
      "other",
      "other",
    ]);
  });

  test("[harness/H3] a changed prompt text logs one change, an unchanged one nothing", () => {
    const session = openSession();
    const turn = (id: string, system: string): number => {
      configure(session, { config: { system } });
      send(session, "followup", id);
      run(session);
      return headers(session).length;
    };
    expect([turn("m1", "one"), turn("m2", "one"), turn("m3", "two")]).toEqual([1, 1, 2]);
    expect(headers(session)[1]?.data).toMatchObject({
      reason: "change",
      header: { system: "two" },
    });
  });

  test("[harness/H4] in place of a resume entry: a session rebuilt from its log goes on under the header it has", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session);
    const replayed = new Session("s1", () => 0);
    replayed.record(...session.log.entries);
    send(replayed, "followup", "m2");
    const { requests } = run(replayed);
    expect(headers(replayed).map(({ data }) => data.reason)).toEqual(["initial"]);
    expect(requests[0]?.turn).toBe(2);
  });

  test("[harness/H5] in place of a comparison of messages the digest: another surface has another one, and a mismatch ends the turn without a retry", () => {
    const session = openSession();
    send(session, "followup", "m1");
    const { begun } = run(session, { model: () => failure("SURFACE_MISMATCH") });
    const op = begun.flatMap((one) => (one.op.kind === "model" ? [one.op] : []));
    expect(op).toHaveLength(1);
    expect(op[0]?.digest).toBe(digestFromScratch(session, op[0]?.length));
    expect(endsOf(session)).toMatchObject([{ kind: "error", code: "SURFACE_MISMATCH" }]);
    session.log.append(
      {
        type: "user/message",
        surfaceOp: "append",
        data: { message: { id: "x", role: "user", content: [], source: { kind: "plugin" } } },
      },
      0,
    );
    expect(session.log.surface.digest()).not.toBe(op[0]?.digest);
  });

  test("[harness/H6] tools in another order are a change", () => {
    const session = openSession({}, [row("a"), row("b")]);
    send(session, "followup", "m1");
    run(session);
    configure(session, { refreshTools: true });
    send(session, "followup", "m2");
    const { requests } = run(session, { table: () => session.folds.place.tools.toReversed() });
    expect(headers(session).map(({ data }) => data.reason)).toEqual(["initial", "change"]);
    expect(requests[0]?.tools?.map((tool) => (tool as { name: string }).name)).toEqual([
      "b",
      "a",
      "todo_write",
    ]);
  });

  test("[harness/H7] an effort the adapter fills in is marked, and filled in anew after a switch of provider", () => {
    const session = openSession();
    let provider = "scripted";
    const route = (request: { provider: string; model: string }): ModelRoute => ({
      provider: request.provider,
      model: request.model,
      defaults: request.provider === "other" ? { maxTokens: 900 } : { reasoningEffort: "high" },
    });
    for (const next of ["scripted", "other", "scripted"]) {
      provider = next;
      send(session, "followup", `${headers(session).length}`);
      run(session, { route, policy: { request: (_, given) => ({ ...given, provider }) } });
    }
    expect(
      headers(session).map(({ data }) => [data.header.config, data.header.adapterDefaults]),
    ).toEqual([
      [{ provider: "scripted", model: "m", reasoningEffort: "high" }, { reasoningEffort: true }],
      [{ provider: "other", model: "m", maxTokens: 900 }, { maxTokens: true }],
      [{ provider: "scripted", model: "m", reasoningEffort: "high" }, { reasoningEffort: true }],
    ]);
  });

  test("[harness/H8] in place of an awaited agent/request: an inject while the route is asked for joins the next request, not this one", () => {
    const session = openSession();
    send(session, "followup", "m1");
    const { requests } = run(session, {
      at: once(waitingFor("route"), () => send(session, "inject", "i1", "late news")),
    });
    expect(requests.map(({ messages }) => JSON.stringify(messages).includes("late news"))).toEqual([
      false,
      true,
    ]);
    expect(userTexts(session)).toEqual(["m1", "late news"]);
  });

  test("[harness/H10] every request of a whole run can be rebuilt from the log alone, without this code", () => {
    const session = openSession({ system: "be brief" }, [row("p", { parallel: true })]);
    send(session, "followup", "m1");
    send(session, "inject", "i1");
    const { requests } = run(session, {
      model: saying(
        failure("SERVER"),
        calls("p", "p", "nope"),
        { kind: "reply", content: [], finish: "stop" },
        text("cut", "max-tokens"),
      ),
      at: once(waitingFor("tool"), () => send(session, "steer", "s1")),
      policy: { requestError: () => 1, runtimeContext: ({ step }) => `step ${step}` },
    });
    configure(session, { config: { system: "be long", request: { provider: "p2", model: "m2" } } });
    send(session, "followup", "m2");
    const later = run(session);
    const log = JSON.parse(JSON.stringify(session.log.entries)) as unknown[];
    const recorded = [...requests, ...later.requests];
    expect(recorded.length).toBeGreaterThanOrEqual(4);
    expect(compareRequests(witnessRequests(log), recorded)).toEqual([]);
    expect(witnessRequests(log)).toHaveLength(recorded.length);
  });

  test("[harness/H11] a route's capacity that appears or disappears is logged each time, an equal one never", () => {
    const session = openSession();
    const capacity = [undefined, undefined, 8_000, 8_000, 9_000, undefined];
    for (const [index, contextWindow] of capacity.entries()) {
      session.routes = [
        {
          provider: "scripted",
          model: "m",
          ...(contextWindow === undefined ? {} : { contextWindow }),
        },
      ];
      send(session, "followup", `m${index}`);
      run(session);
    }
    expect(contexts(session)).toEqual([
      { provider: "scripted", model: "m" },
      { provider: "scripted", model: "m", contextWindow: 8_000 },
      { provider: "scripted", model: "m", contextWindow: 9_000 },
      { provider: "scripted", model: "m" },
    ]);
    expect(headers(session)).toHaveLength(1);
  });

  test("a route that nobody could say anything about is used as it is, and asked for again", () => {
    const session = openSession();
    send(session, "followup", "m1");
    send(session, "followup", "m2");
    const { begun } = run(session, { route: () => undefined });
    expect(begun.map(({ op }) => op.kind)).toEqual(["route", "model", "route", "model"]);
    expect(contexts(session)).toEqual([{ provider: "scripted", model: "m" }]);
  });

  test("a configuration changed during a turn is in the request of the next step", () => {
    const session = openSession({}, [row("t")]);
    send(session, "followup", "m1");
    const { requests } = run(session, {
      model: saying(calls("t")),
      at: once(waitingFor("tool"), () => configure(session, { config: { system: "new" } })),
    });
    expect(requests.map(({ system }) => system)).toEqual([undefined, "new"]);
  });
});
