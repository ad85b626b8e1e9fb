import type { ScenarioInput } from "../support/scenario-input.js";

/** What a scripted turn is to leave behind; literal, so that no code of the product takes part in the expectation. */
export interface ExpectedCall {
  readonly callId: string;
  /** The key of exactly-once: `<turn>.<step>.<callId>`; commands know it as LONGHAUL_CALL. */
  readonly claim: string;
  readonly tool: "bash" | "read" | "write";
  /** Text of the true result. */
  readonly result: RegExp;
}

export interface ExpectedStep {
  readonly turn: number;
  readonly step: number;
  readonly text: string;
  readonly calls: readonly ExpectedCall[];
}

export interface Script {
  readonly scenario: ScenarioInput;
  /** Steps with tool calls and the closing step of each scripted turn. */
  readonly steps: readonly ExpectedStep[];
  /** What any further step or turn says. */
  readonly echo: string;
}

/** Content of the file that the scripted reads read; it lies in every workspace. */
export const givenFile = { name: "given.txt", content: "given\n" };

/** How much of a session is scripted: turns, and steps with tool calls in each; one closing step follows. */
export interface Size {
  readonly turns: number;
  readonly steps: number;
}

/** Later turns and steps than the scripted ones only answer. */
export function createScript({ turns, steps: working }: Size): Script {
  const echo = "Heard.";
  const steps: ExpectedStep[] = [];
  const scripted: ScenarioInput["turns"] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const own: ScenarioInput["turns"][number]["steps"] = [];
    for (let step = 1; step <= working; step++) {
      const text = `Turn ${turn}, step ${step}. ${"Thinking aloud, word by word. ".repeat(7)}`;
      const calls = callsOf(turn, step);
      own.push({
        text,
        firstDelayMs: 400,
        delayMs: 70,
        chunk: 20,
        calls: calls.map(({ tool, args }) => ({ tool, args })),
      });
      steps.push({ turn, step, text, calls });
    }
    own.push({ text: `Turn ${turn} is done.` }, { text: echo, repeat: 20 });
    steps.push({ turn, step: working + 1, text: `Turn ${turn} is done.`, calls: [] });
    scripted.push({ steps: own });
  }
  scripted.push({ repeat: 50, steps: [{ text: echo, repeat: 20 }] });
  return { scenario: { turns: scripted }, steps, echo };
}

type Call = ExpectedCall & { readonly args: { readonly [key: string]: string } };

/** Odd steps: commands one after the other. Even steps: reads side by side, then a command and a write. */
function callsOf(turn: number, step: number): Call[] {
  const place = `${turn}.${step}`;
  const bash = (command: string, result: string) => ({
    tool: "bash" as const,
    args: { command, description: `Step ${place}` },
    result: new RegExp(`^${result}$`),
  });
  const read = () => ({
    tool: "read" as const,
    args: { path: givenFile.name },
    result: /^given\n$/,
  });
  const path = `written-${place}.txt`;
  const write = {
    tool: "write" as const,
    args: { path, content: `written in ${place}` },
    result: new RegExp(`^created ${path} \\(\\d+ bytes\\)$`),
  };
  const loop = bash(loopCommand(loopKinds[step % 3] ?? "plain", place), `looped ${place}`);
  const quick = bash(quickCommand(place), `ran ${place}`);
  const calls = step % 2 === 1 ? [quick, loop, quick] : [read(), read(), read(), loop, write];
  return calls.map((call, index) => {
    const callId = `call-${turn}-${step}-${index + 1}`;
    return Object.assign({ callId, claim: `${place}.${callId}` }, call);
  });
}

const loopKinds = ["plain", "deaf", "escaped"] as const;

/**
 * Marks its start and end, and appends the time every 100 ms: half a second, or as long as the file `hold-<claim>` is
 * there (60 s at most). `deaf` ignores TERM; in `escaped` a child that left the process group does the appending.
 */
function loopCommand(kind: (typeof loopKinds)[number], place: string): string {
  const body = `n=0
while [ $n -lt 5 ] || [ -e "hold-$c" ]; do
  date +%s%3N >>"beats-$c"; n=$((n+1)); [ $n -lt 600 ] || break; sleep 0.1
done`;
  const run = {
    plain: body,
    deaf: `trap '' TERM\n${body}`,
    escaped: `export c\nsetsid bash -c '${body}' &\nwait`,
  }[kind];
  return `c=$LONGHAUL_CALL\necho "start $c" >>runs.log\n${run}\necho "end $c" >>runs.log\necho looped ${place}`;
}

function quickCommand(place: string): string {
  return `echo "start $LONGHAUL_CALL" >>runs.log; echo "end $LONGHAUL_CALL" >>runs.log; echo ran ${place}`;
}
