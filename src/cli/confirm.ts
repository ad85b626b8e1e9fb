import type { Io, Output } from "./io.js";

/** Asks on a terminal; anything but y or yes is no. The rest of the input is not read. */
export async function confirm(io: Io, out: Output, question: string): Promise<boolean> {
  out.write(`${question} [y/N] `);
  let answer = "";
  for await (const piece of io.stdin) {
    answer += piece.toString();
    if (answer.includes("\n")) break;
  }
  return /^y(?:es)?$/i.test((answer.split("\n", 1)[0] ?? "").trim());
}
