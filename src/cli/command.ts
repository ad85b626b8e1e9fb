import type { Backend } from "./backend.js";
import type { Io } from "./io.js";

export interface OptionSpec {
  readonly type: "string" | "boolean";
  /** Placeholder of a string's value in the help. */
  readonly value?: string;
  /** One letter that stands for it, e.g. `f` for `-f`. */
  readonly short?: string;
  readonly help: string;
}

export type OptionSpecs = { readonly [name: string]: OptionSpec };

export type OptionValues<O extends OptionSpecs> = {
  readonly [K in keyof O]?: O[K]["type"] extends "string" ? string : boolean;
};

/** Options as they were read, before `command` gives them their types. */
export type RawOptions = { readonly [name: string]: string | boolean };

/** A command as data: its help, what it accepts, and what it does. */
export interface Command {
  /** One or two words, e.g. `server start`. */
  readonly name: string;
  readonly summary: string;
  /** Its words after the name, as the help shows them, e.g. `<session> "text"`. */
  readonly words: string;
  readonly minWords: number;
  readonly maxWords: number;
  readonly options: OptionSpecs;
  /** More help, whole lines. */
  readonly details?: readonly string[];
  run(context: Context, words: readonly string[], options: RawOptions): Promise<number>;
}

/** What a command works with. */
export interface Context {
  readonly io: Io;
  /** Opens the server and a client; closed when the command ends, whichever way. */
  backend(request: BackendRequest): Promise<Backend>;
  /** The promise, unless the user ends the command first: then the command ends with the exit code of that. */
  orStop<T>(promise: Promise<T>): Promise<T>;
}

export interface BackendRequest {
  readonly home: string;
  /** Register Longhaul's search attributes where they are missing: for commands that open sessions. */
  readonly register?: boolean;
  /** Leave the embedded server running. */
  readonly keep?: boolean;
  readonly report?: (line: string) => void;
}

type Spec<O extends OptionSpecs> = Omit<
  Command,
  "options" | "run" | "minWords" | "maxWords" | "words"
> & {
  readonly words?: string;
  readonly minWords?: number;
  readonly maxWords?: number;
  readonly options: O;
  run(context: Context, words: readonly string[], options: OptionValues<O>): Promise<number>;
};

/** Types the options of `run` by their declaration. */
export function command<const O extends OptionSpecs>(spec: Spec<O>): Command {
  const { words = "", minWords = 0, maxWords = minWords } = spec;
  return {
    ...spec,
    words,
    minWords,
    maxWords,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsing gave each option the type it declares
    run: (context, given, options) => spec.run(context, given, options as OptionValues<O>),
  };
}

export const homeOption = {
  home: {
    type: "string",
    value: "dir",
    help: "data directory (default LONGHAUL_HOME, else ~/.longhaul)",
  },
} as const;

export const jsonOption = {
  json: { type: "boolean", help: "print one JSON document; an error is a line of JSON on stderr" },
} as const;
