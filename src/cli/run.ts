import type { Backend } from "./backend.js";
import type { BackendRequest, Command, Context } from "./command.js";
import { failureCode, failureJson, failureText } from "./failure.js";
import { commandHelp, groupHelp, overview } from "./help.js";
import { tellStopping } from "./interrupts.js";
import { aborted, stopOf, type Io } from "./io.js";
import { parse } from "./parse.js";

export interface CliParts {
  readonly commands: readonly Command[];
  readonly version: string;
  openBackend(request: BackendRequest, io: Io): Promise<Backend>;
}

/** Runs one command line to its exit code. Mistakes and failures become one line on stderr, JSON with `--json`. */
export async function runCli(argv: readonly string[], io: Io, parts: CliParts): Promise<number> {
  const debug = io.env["LONGHAUL_DEBUG"] === "1";
  const render = asksForJson(argv) ? failureJson : failureText;
  const ended = tellStopping(io);
  const tell = (error: unknown) => void io.stderr.write(render(error, debug));
  try {
    const request = parse(argv, parts.commands);
    if (request.kind === "version") {
      io.stdout.write(`${parts.version}\n`);
      return 0;
    }
    if (request.kind === "help") {
      const { command, group } = request;
      const text =
        command === undefined
          ? group === undefined
            ? overview(parts.commands)
            : groupHelp(group, parts.commands)
          : commandHelp(
              command,
              parts.commands.filter(({ name }) => name.startsWith(`${command.name} `)),
            );
      io.stdout.write(text);
      return 0;
    }
    // No command goes on in a directory that was deleted: what it starts would fail on it.
    void io.cwd;
    return await withBackends(io, parts, tell, (context) =>
      request.command.run(context, request.words, request.options),
    );
  } catch (error) {
    if (error instanceof Stopped) return stopOf(io.stop).exitCode;
    tell(error);
    return failureCode(error);
  } finally {
    ended();
  }
}

/** Are failures to be JSON? Asked of the words as they are: a command line with a mistake has no options yet. */
export function asksForJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv.slice(0, end === -1 ? undefined : end).includes("--json");
}

/** Thrown by `Context.orStop` when the user ends the command. */
class Stopped extends Error {}

async function withBackends(
  io: Io,
  parts: CliParts,
  tell: (error: unknown) => void,
  work: (context: Context) => Promise<number>,
): Promise<number> {
  const opened: Promise<Backend>[] = [];
  const orStop = <T>(promise: Promise<T>): Promise<T> => {
    promise.catch(() => undefined);
    const stopped = aborted(io.stop).then(() => Promise.reject(new Stopped()));
    stopped.catch(() => undefined);
    return Promise.race([promise, stopped]);
  };
  const context: Context = {
    io,
    orStop,
    backend(request) {
      const opening = parts.openBackend(request, io);
      opened.push(opening);
      return orStop(opening);
    },
  };
  try {
    return await work(context);
  } finally {
    for (const opening of opened.toReversed()) {
      try {
        const backend = await opening.catch(() => undefined);
        await backend?.close();
      } catch (error) {
        tell(error);
      }
    }
  }
}
