import * as z from "zod";
import { defineTool, type ToolContext, type ToolDefinition } from "../../src/tools/define.js";

/** A tool whose bodies wait for the test: it sees who runs, and lets each end. */
export interface Gated {
  readonly tool: ToolDefinition;
  /** Bodies running now, by session and argument `n`. */
  running(session: string): readonly string[];
  /** How many bodies ever began, by session. */
  begun(session: string): number;
  /** Most bodies of a session at once. */
  peak(session: string): number;
  release(session: string, n: string): void;
}

export interface GatedOptions {
  readonly parallel?: boolean;
  /** Ends its body when it is cancelled; else only a release does. */
  readonly heeds?: boolean;
  readonly workspace?: boolean;
}

export function gatedTool(name: string, options: GatedOptions = {}): Gated {
  const gates = new Map<string, Map<string, () => void>>();
  const begun = new Map<string, number>();
  const peak = new Map<string, number>();
  const of = (session: string): Map<string, () => void> => {
    const known = gates.get(session) ?? new Map<string, () => void>();
    gates.set(session, known);
    return known;
  };
  const body = async (
    { n, fail }: { n: string; fail?: boolean | undefined },
    context: ToolContext,
  ): Promise<string> => {
    const { sessionId, signal } = context;
    const open = of(sessionId);
    begun.set(sessionId, (begun.get(sessionId) ?? 0) + 1);
    await new Promise<void>((resolve) => {
      open.set(n, resolve);
      peak.set(sessionId, Math.max(peak.get(sessionId) ?? 0, open.size));
      if (options.heeds !== false)
        signal.addEventListener("abort", () => resolve(), { once: true });
    });
    open.delete(n);
    if (fail === true) throw new Error(`${n} failed by itself`);
    return `did ${n}`;
  };
  return {
    tool: defineTool({
      name,
      description: "Waits for the test.",
      parameters: z.object({ n: z.string(), fail: z.boolean().optional() }),
      parallel: options.parallel === true,
      workspace: options.workspace !== false,
      execute: body,
    }),
    running: (session) => [...of(session).keys()],
    begun: (session) => begun.get(session) ?? 0,
    peak: (session) => peak.get(session) ?? 0,
    release: (session, n) => of(session).get(n)?.(),
  };
}
