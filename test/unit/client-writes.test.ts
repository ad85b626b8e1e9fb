import {
  ApplicationFailure,
  QueryNotRegisteredError,
  ServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from "@temporalio/client";
import { describe, expect, test } from "vitest";
import { attemptUntil, type AttemptOptions, type Bounded } from "../../src/client/attempts.js";
import { classifyFailure } from "../../src/client/failures.js";
import { KeyedQueue } from "../../src/client/keyed-queue.js";
import { freshSessionId, updateIdOf } from "../../src/client/update-id.js";
import { LonghaulError } from "../../src/contracts/errors.js";

describe("the queue of writes", () => {
  test("runs one task at a time per key, in order, and other keys beside it", async () => {
    const queue = new KeyedQueue();
    const seen: string[] = [];
    const gates = new Map<string, () => void>();
    const task = (key: string, name: string) =>
      queue.run(key, async () => {
        seen.push(`${name} begins`);
        await new Promise<void>((resolve) => gates.set(name, resolve));
        seen.push(`${name} ends`);
        return name;
      });
    const [a, b, c] = [task("s1", "a"), task("s1", "b"), task("s2", "c")];
    await expect.poll(() => seen).toEqual(["a begins", "c begins"]);
    gates.get("c")?.();
    await expect(c).resolves.toBe("c");
    expect(seen).not.toContain("b begins");
    gates.get("a")?.();
    await expect.poll(() => seen).toContain("b begins");
    gates.get("b")?.();
    await expect(Promise.all([a, b])).resolves.toEqual(["a", "b"]);
    expect(seen).toEqual(["a begins", "c begins", "c ends", "a ends", "b begins", "b ends"]);
    await expect.poll(() => queue.size).toBe(0);
  });

  test("goes on after a task that failed, which fails for its caller alone", async () => {
    const queue = new KeyedQueue();
    const bad = queue.run("s", () => Promise.reject(new Error("no")));
    const good = queue.run("s", () => Promise.resolve("yes"));
    await expect(bad).rejects.toThrow("no");
    await expect(good).resolves.toBe("yes");
  });
});

describe("ids", () => {
  test("the same command is the same update; another command, id or content is another", () => {
    const id = updateIdOf("session.send", "m1", { content: "hi" });
    expect(updateIdOf("session.send", "m1", { content: "hi" })).toBe(id);
    const others = [
      updateIdOf("todo.write", "m1", { content: "hi" }),
      updateIdOf("session.send", "m2", { content: "hi" }),
      updateIdOf("session.send", "m1", { content: "ho" }),
      updateIdOf("session.send", "m1{", { content: "hi" }),
    ];
    expect(new Set([id, ...others]).size).toBe(5);
  });

  test("a fresh session id is one that is accepted, and sorts by its time", () => {
    const early = freshSessionId(1_800_000_000_000);
    expect(early).toMatch(/^s-[a-z0-9]+-[a-f0-9]{8}$/u);
    expect(early < freshSessionId(1_800_000_100_000)).toBe(true);
  });
});

function grpcError(code: number, details: string): Error {
  return Object.assign(new Error(`${code} ${details}`), { code, details, metadata: {} });
}

describe("what a failure means", () => {
  const update = (type: string, message = "m") =>
    new WorkflowUpdateFailedError("failed", ApplicationFailure.create({ type, message }));

  test("a refusal of the session keeps its code and message", () => {
    expect(classifyFailure(update("DUPLICATE_ID", "m1 was used\nat x"))).toEqual({
      kind: "refused",
      code: "DUPLICATE_ID",
      message: "m1 was used",
    });
  });

  test("an update that raced a query is tried again, and one whose session ended under it is gone", () => {
    expect(classifyFailure(update("UnprocessedUpdate"))).toMatchObject({
      kind: "retry",
      why: "update",
    });
    expect(classifyFailure(update("AcceptedUpdateCompletedWorkflow"))).toEqual({ kind: "gone" });
  });

  test("a refusal without a known code is not passed off as one", () => {
    expect(classifyFailure(update("Whatever"))).toMatchObject({ kind: "fatal", code: "INVARIANT" });
  });

  test.each([
    [14, "connection refused", "transport"],
    [8, "busy", "transport"],
    [8, "consistent query buffer is full, this may be caused by too many queries", "worker"],
    [4, "deadline", "worker"],
    [9, "Cannot query workflow due to Workflow Task in failed state.", "task"],
    [9, "no poller seen for task queue recently", "worker"],
  ] as const)("status %i (%s) is tried again: %s", (code, details, why) => {
    expect(
      classifyFailure(new ServiceError("failed", { cause: grpcError(code, details) })),
    ).toMatchObject({ kind: "retry", why });
  });

  test("a deadline of the SDK is the worker's silence; a missing workflow is gone; an unknown query is final", () => {
    expect(classifyFailure(new WorkflowUpdateRPCTimeoutOrCancelledError("late"))).toMatchObject({
      kind: "retry",
      why: "worker",
    });
    expect(classifyFailure(new WorkflowNotFoundError("no", "s", undefined))).toEqual({
      kind: "gone",
    });
    expect(classifyFailure(new QueryNotRegisteredError("no such query", 3))).toMatchObject({
      kind: "fatal",
      code: "INVARIANT",
    });
  });
});

describe("attempts", () => {
  const bounds: Bounded = {
    withDeadline: (_, fn) => fn(),
    withAbortSignal: (_, fn) => fn(),
    closed: new AbortController().signal,
  };
  const options = (over: Partial<AttemptOptions> = {}): AttemptOptions => ({
    deadline: Date.now() + 20_000,
    gone: () => Promise.resolve(new LonghaulError("SESSION_CLOSED", "closed")),
    late: (last) => Promise.resolve(new LonghaulError("NO_WORKER", `late: ${last.why}`)),
    ...over,
  });

  test("go on over lost connections and unprocessed updates until there is an answer", async () => {
    const troubles: Error[] = [
      grpcError(14, "away"),
      new WorkflowUpdateFailedError("f", ApplicationFailure.create({ type: "UnprocessedUpdate" })),
    ];
    const answer = await attemptUntil(bounds, options(), () => {
      const trouble = troubles.shift();
      return trouble === undefined ? Promise.resolve("done") : Promise.reject(trouble);
    });
    expect(answer).toBe("done");
    expect(troubles).toEqual([]);
  });

  test("end with a refusal at once, with its code and cause", async () => {
    let calls = 0;
    const cause = new WorkflowUpdateFailedError(
      "f",
      ApplicationFailure.create({ type: "SESSION_CLOSED", message: "is closing" }),
    );
    const call = attemptUntil(bounds, options(), () => {
      calls++;
      return Promise.reject(cause);
    });
    await expect(call).rejects.toMatchObject({
      name: "LonghaulError",
      code: "SESSION_CLOSED",
      message: "is closing",
      cause,
    });
    expect(calls).toBe(1);
  });

  test("let the description decide about a session that is not there", async () => {
    const missing = () => Promise.reject(new WorkflowNotFoundError("no", "s", undefined));
    await expect(attemptUntil(bounds, options(), missing)).rejects.toMatchObject({
      code: "SESSION_CLOSED",
    });
    let open = 2;
    const answer = attemptUntil(bounds, options({ gone: () => Promise.resolve(undefined) }), () =>
      open-- > 0 ? missing() : Promise.resolve("there"),
    );
    await expect(answer).resolves.toBe("there");
  });

  test("end at the deadline with the reason of the last one", async () => {
    const call = attemptUntil(bounds, options({ deadline: Date.now() + 150 }), () =>
      Promise.reject(grpcError(14, "away")),
    );
    await expect(call).rejects.toMatchObject({ code: "NO_WORKER", message: "late: transport" });
  });

  test("end when the signal aborts, also while waiting for the next one", async () => {
    const stop = new AbortController();
    let calls = 0;
    const call = attemptUntil(bounds, options({ signal: stop.signal }), () => {
      if (++calls === 3) stop.abort();
      return Promise.reject(grpcError(14, "away"));
    });
    await expect(call).rejects.toMatchObject({ code: "ABORTED" });
    expect(calls).toBe(3);
  });

  test("end when the client closes, also while waiting for the next one", async () => {
    const closing = new AbortController();
    const call = attemptUntil({ ...bounds, closed: closing.signal }, options(), () => {
      closing.abort();
      return Promise.reject(grpcError(14, "away"));
    });
    await expect(call).rejects.toMatchObject({
      code: "ABORTED",
      message: "the client was closed during the call",
    });
  });
});
