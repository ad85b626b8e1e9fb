import { EventEmitter } from "node:events";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Interrupts, tellStopping } from "../../src/cli/interrupts.js";
import { stops, type Stop } from "../../src/cli/io.js";
import { leftBehind } from "../../src/cli/left-behind.js";
import { watchOutputs } from "../../src/cli/outputs.js";
import { fakeIo } from "../support/fake-cli.js";

afterEach(() => {
  vi.useRealTimers();
});

function interrupts(patienceMs?: number) {
  const told: (string | number)[] = [];
  const under = new Interrupts({
    exit: (code) => told.push(code),
    write: (text) => told.push(text),
    ...(patienceMs === undefined ? {} : { patienceMs }),
  });
  return { under, told };
}

describe("a signal", () => {
  it("ends the command in good order; nothing is said", () => {
    const { under, told } = interrupts();
    under.onForcedExit(() => Promise.resolve("it stays"));
    under.stop(stops.SIGINT);
    expect(under.signal.reason).toBe(stops.SIGINT);
    expect(told).toEqual([]);
  });

  it("a second time ends the process with a line about what stays behind", async () => {
    const { under, told } = interrupts();
    under.onForcedExit(() => Promise.resolve("it stays"));
    under.onForcedExit(() => Promise.resolve(undefined));
    under.onForcedExit(() => Promise.reject(new Error("cannot look")));
    under.onForcedExit(() => Promise.resolve("this does not"))();
    under.stop(stops.SIGINT);
    under.stop(stops.SIGTERM);
    await vi.waitFor(() => expect(told).toEqual(["it stays\n", 143]), { timeout: 10_000 });
  });

  it("a second time does not wait for a look that hangs, and a third time not at all", async () => {
    const hang = () => new Promise<undefined>(() => undefined);
    const patient = interrupts(1);
    patient.under.onForcedExit(hang);
    patient.under.stop(stops.SIGINT);
    patient.under.stop(stops.SIGINT);
    await vi.waitFor(() => expect(patient.told).toEqual([130]), { timeout: 10_000 });

    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { under, told } = interrupts();
    under.onForcedExit(hang);
    for (let n = 0; n < 3; n += 1) under.stop(stops.SIGINT);
    expect(told).toEqual([130]);
  });

  it("is no reader that went away: that forces nothing", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { under, told } = interrupts();
    under.stop(stops.SIGINT);
    under.stop(stops.EPIPE);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(told).toEqual([]);
  });
});

describe("an end that takes its time", () => {
  function after(stop: Stop, ms: number): string {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const io = fakeIo();
    const ended = tellStopping(io);
    io.controller.abort(stop);
    vi.advanceTimersByTime(ms);
    ended();
    vi.advanceTimersByTime(60_000);
    return io.err.text;
  }

  it("is told on stderr, once, with the way to leave at once", () => {
    expect(after(stops.SIGINT, 10_000)).toBe(
      "stopping: waiting for what runs (Ctrl-C again to leave at once)\n",
    );
    expect(after(stops.SIGTERM, 10_000)).toBe(
      "stopping: waiting for what runs (again to leave at once)\n",
    );
  });

  it("is not told when it is over in a moment, nor when nobody reads", () => {
    expect(after(stops.SIGINT, 100)).toBe("");
    expect(after(stops.EPIPE, 10_000)).toBe("");
  });
});

describe("the server that a forced exit leaves", () => {
  const user = (pid: number) => ({ pid, started: "1", id: String(pid), since: 0 });
  const last = { running: true, keep: false, users: [user(7)] };

  it("is told by its last user, with the way to stop it", () => {
    expect(leftBehind(last, 7)).toMatch(/keeps running.*longhaul server stop/);
  });

  it.each([
    ["is down", { ...last, running: false }],
    ["is to stay up", { ...last, keep: true }],
    ["has other users", { ...last, users: [user(7), user(8)] }],
  ])("is not told when it %s", (_what, status) => {
    expect(leftBehind(status, 7)).toBeUndefined();
  });
});

describe("an output that cannot be written", () => {
  function watched() {
    const [stdout, stderr] = [new EventEmitter(), new EventEmitter()];
    const told: string[] = [];
    const state = watchOutputs(
      { stdout, stderr },
      { stop: ({ why }) => told.push(why), tell: ({ message }) => told.push(message) },
    );
    const fail = (output: EventEmitter, code: string) =>
      output.emit("error", Object.assign(new Error(`${code}: no`), { code }));
    return { stdout, stderr, told, state, fail };
  }

  it("ends the command with a failure that is told once", () => {
    const { stdout, stderr, told, state, fail } = watched();
    fail(stdout, "ENOSPC");
    fail(stdout, "ERR_STREAM_DESTROYED");
    fail(stderr, "ENOSPC");
    expect(told).toEqual(["cannot write to stdout: ENOSPC: no", "WRITE"]);
    expect(state.failed).toBe(true);
  });

  it("is silent when it is stderr", () => {
    const { stderr, told, state, fail } = watched();
    fail(stderr, "ENOSPC");
    expect({ told, failed: state.failed }).toEqual({ told: ["WRITE"], failed: true });
  });

  it.each(["EPIPE", "EIO"])("is no failure when its reader went away (%s)", (code) => {
    const { stdout, told, state, fail } = watched();
    fail(stdout, code);
    expect({ told, failed: state.failed }).toEqual({ told: ["EPIPE"], failed: false });
  });

  it("does not force an exit, nor say that it waits", () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { under, told } = interrupts();
    const io = fakeIo();
    const end = tellStopping({ ...io, stop: under.signal });
    under.stop(stops.WRITE);
    under.stop(stops.WRITE);
    vi.advanceTimersByTime(10_000);
    end();
    expect({ told, said: io.err.text }).toEqual({ told: [], said: "" });
  });
});
