import type { Io } from "./io.js";
import { oneLine } from "./render/clean.js";
import { styled, terminalOf } from "./render/terminal.js";

/** Progress lines go to stderr, and only where a person watches: programs get an empty stderr on success. */
export function progress(io: Io): (line: string) => void {
  const terminal = terminalOf(io.stderr, io.env);
  return (line) => {
    if (io.stderr.isTTY === true) io.stderr.write(`${styled(terminal, "dim", oneLine(line))}\n`);
  };
}
