import { stops, type Stop } from "./io.js";

interface Watched {
  on(event: "error", listener: (error: NodeJS.ErrnoException) => void): unknown;
}

interface OutputParts {
  stop(reason: Stop): void;
  /** To stderr. */
  tell(error: Error): void;
}

/**
 * Ends the command in good order when an output cannot be written. A reader that went away is no failure; what else went
 * wrong with stdout is told once. `failed`: the exit code is to be 1, also when the command had done its work.
 */
export function watchOutputs(
  outputs: { readonly stdout: Watched; readonly stderr: Watched },
  parts: OutputParts,
): { readonly failed: boolean } {
  const state = { failed: false };
  for (const name of ["stdout", "stderr"] as const) {
    outputs[name].on("error", (error) => {
      if (error.code === "EPIPE" || error.code === "EIO") {
        parts.stop(stops.EPIPE);
        return;
      }
      if (state.failed) return;
      state.failed = true;
      // When stderr fails there is nowhere to tell it.
      if (name === "stdout") parts.tell(new Error(`cannot write to stdout: ${error.message}`));
      parts.stop(stops.WRITE);
    });
  }
  return state;
}
