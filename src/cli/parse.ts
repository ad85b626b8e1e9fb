import { parseArgs } from "node:util";
import { LonghaulError } from "../contracts/errors.js";
import type { Command, RawOptions } from "./command.js";
import { suggest } from "./suggest.js";

export type Request =
  | { readonly kind: "help"; readonly command?: Command; readonly group?: string }
  | { readonly kind: "version" }
  | {
      readonly kind: "run";
      readonly command: Command;
      readonly words: readonly string[];
      readonly options: RawOptions;
    };

/** Reads a command line. Throws USAGE, one line with the nearest known word. */
export function parse(argv: readonly string[], commands: readonly Command[]): Request {
  const [first, second] = argv;
  if (first === undefined || first === "--help" || first === "-h") return { kind: "help" };
  if (first === "--version" || first === "-V") return { kind: "version" };
  if (first === "help") return helpFor(argv.slice(1), commands);
  if (first.startsWith("-")) {
    throw usage(
      `unknown option ${quoted(first)} before a command${nearest(first, ["--help", "--version"])}`,
      "longhaul --help",
    );
  }
  const names = [...new Set(commands.map((command) => command.name.split(" ", 1)[0] ?? ""))];
  const exact = commands.find((command) => command.name === first);
  const group = commands.filter((command) => command.name.startsWith(`${first} `));
  const member = group.find((command) => lastWord(command) === second);
  if (member !== undefined) return read(member, argv.slice(2));
  if (exact !== undefined) return read(exact, argv.slice(1), group.map(lastWord));
  if (group.length === 0)
    throw usage(`unknown command ${quoted(first)}${nearest(first, names)}`, "longhaul --help");
  if (second === undefined || second === "--help" || second === "-h") {
    if (second !== undefined) return { kind: "help", group: first };
    throw usage(
      `${first} needs one of ${group.map(lastWord).join(", ")}`,
      `longhaul ${first} --help`,
    );
  }
  throw usage(
    `unknown command ${quoted(`${first} ${second}`)}${nearest(second, group.map(lastWord))}`,
    `longhaul ${first} --help`,
  );
}

function helpFor(words: readonly string[], commands: readonly Command[]): Request {
  return words.length === 0 ? { kind: "help" } : parse([...words, "--help"], commands);
}

/** `members`: words that make another command of it, e.g. `start` after `jobs`. */
function read(command: Command, args: readonly string[], members: readonly string[] = []): Request {
  const help = `longhaul ${command.name} --help`;
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(
        Object.entries(command.options).map(([name, { type, short }]) => [
          name,
          short === undefined ? { type } : { type, short },
        ]),
      ),
      help: { type: "boolean", short: "h" },
    },
    strict: false,
    tokens: true,
  });
  if (tokens.some((token) => token.kind === "option" && token.name === "help"))
    return { kind: "help", command };
  const options: Record<string, string | boolean> = {};
  const words: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") words.push(token.value);
    if (token.kind !== "option") continue;
    const spec = Object.hasOwn(command.options, token.name)
      ? command.options[token.name]
      : undefined;
    if (spec === undefined) {
      const known = [...Object.keys(command.options), "help"].map((name) => `--${name}`);
      throw usage(`unknown option ${quoted(token.rawName)}${nearest(token.rawName, known)}`, help);
    }
    if (spec.type === "boolean") {
      if (token.value !== undefined)
        throw usage(`${token.rawName} takes no value, got ${quoted(token.value)}`, help);
      options[token.name] = true;
    } else {
      // A following option was taken for the value.
      const missing =
        token.value === undefined || (!token.inlineValue && /^--?[a-z]/i.test(token.value));
      if (missing)
        throw usage(`${token.rawName} expected <${spec.value ?? "value"}>, got nothing`, help);
      options[token.name] = token.value ?? "";
    }
  }
  if (words.length < command.minWords)
    throw usage(
      `${command.name} expected ${command.words}, got ${words.length === 0 ? "nothing" : quoted(words.join(" "))}`,
      help,
    );
  const extra = words[command.maxWords];
  if (extra !== undefined)
    throw usage(
      `${command.name} got ${quoted(extra)} too many; it takes ${command.words === "" ? "no words" : command.words}${nearest(words[0] ?? "", members)}`,
      help,
    );
  return { kind: "run", command, words, options };
}

export function usage(message: string, help?: string): LonghaulError {
  return new LonghaulError("USAGE", help === undefined ? message : `${message} (see ${help})`);
}

function nearest(word: string, known: readonly string[]): string {
  const found = suggest(word, known);
  return found === undefined ? "" : `; did you mean ${quoted(found)}?`;
}

function lastWord(command: Command): string {
  return command.name.split(" ").at(-1) ?? command.name;
}

function quoted(word: string): string {
  return JSON.stringify(word);
}
