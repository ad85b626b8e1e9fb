import type { Io } from "../io.js";

const bracketedPaste = { on: "\u001b[?2004h", off: "\u001b[?2004l" };

export interface TerminalEvents {
  resized(): void;
  /** What something else would have written to stderr. */
  errors(text: string): void;
}

/** Keys come one by one, pastes are marked, and nothing else writes to the screen, until what is returned is called. */
export function takeTerminal(io: Io, events: TerminalEvents): () => void {
  const { stdin, stdout } = io;
  const resized = () => events.resized();
  stdin.setRawMode?.(true);
  stdout.write(bracketedPaste.on);
  stdout.on?.("resize", resized);
  io.divertErrors?.((text) => events.errors(text));
  return () => {
    stdout.off?.("resize", resized);
    io.divertErrors?.(undefined);
    stdout.write(bracketedPaste.off);
    stdin.setRawMode?.(false);
  };
}
