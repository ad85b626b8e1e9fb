import { LonghaulError } from "../contracts/errors.js";

/** What `ask` answers, e.g. process.cwd(). WORKSPACE when the directory was deleted under its process. */
export function currentDirectory(ask: () => string): string {
  try {
    return ask();
  } catch (error) {
    throw new LonghaulError(
      "WORKSPACE",
      "the current directory no longer exists; change to one that does",
      { cause: error },
    );
  }
}
