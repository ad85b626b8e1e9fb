import type { SessionClient } from "../../../src/client/session-client.js";
import type { LogEntry } from "../../../src/contracts/log.js";

/** Somebody who looks on. */
export interface Watcher {
  /** Leaves once everything up to the entry `seq` has been shown; in what that differed from the log. */
  leave(seq: number, signal: AbortSignal): Promise<readonly string[]>;
}

/** Watches a session from its beginning: the text shown of each reply must be the one that is logged. */
export function watchText(session: SessionClient): Watcher {
  const problems: string[] = [];
  const left = new AbortController();
  let shown = "";
  let position = -1;
  let moved = (): void => {};
  const watch = async (): Promise<void> => {
    for await (const event of session.watch({ signal: left.signal })) {
      if (event.type === "restart") shown = "";
      else if (event.type === "delta") shown += event.text;
      else if (event.type === "entry") {
        const { entry } = event;
        if (entry.seq !== position + 1) problems.push(`entry ${entry.seq} shown after ${position}`);
        position = entry.seq;
        if (entry.type === "assistant/message" && shown !== textOf(entry))
          problems.push(`shown ${JSON.stringify(shown)}, logged ${JSON.stringify(textOf(entry))}`);
        if (entry.type === "assistant/message" || entry.type === "step/end") shown = "";
        moved();
      }
    }
  };
  const watching = watch().catch((error: unknown) => {
    problems.push(`the watcher was thrown out: ${String(error)}`);
    moved();
  });
  return {
    async leave(seq, signal) {
      await Promise.race([
        watching,
        new Promise<void>((resolve) => {
          moved = () => {
            if (position >= seq) resolve();
          };
          signal.addEventListener("abort", () => resolve(), { once: true });
          moved();
        }),
      ]);
      if (position < seq) problems.push(`the watcher has seen ${position} of ${seq}`);
      left.abort();
      await watching;
      return problems.map((problem) => `a watcher: ${problem}`);
    },
  };
}

function textOf({ data }: Extract<LogEntry, { type: "assistant/message" }>): string {
  return data.message.content
    .map((block) => (block.type === "tool-call" ? "" : block.text))
    .join("");
}
