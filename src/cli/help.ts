import type { Command } from "./command.js";

/** `longhaul --help`. */
export function overview(commands: readonly Command[]): string {
  const rows = commands.map(rowOf);
  return [
    "Longhaul keeps AI-agent sessions alive on Temporal.",
    "",
    "Usage: longhaul <command> [options]",
    "",
    "Commands:",
    ...table(rows),
    "",
    "longhaul <command> --help tells more; longhaul --version prints the version.",
    "Exit codes: 0 done, 1 failed, 2 the command line is wrong.",
    "",
  ].join("\n");
}

/** `longhaul server --help`: the commands that share a first word. */
export function groupHelp(group: string, commands: readonly Command[]): string {
  const rows = commands.filter((command) => command.name.startsWith(`${group} `)).map(rowOf);
  return [`Usage: longhaul ${group} <command> [options]`, "", "Commands:", ...table(rows), ""].join(
    "\n",
  );
}

/** `longhaul <command> --help`. `members`: commands whose names begin with its own. */
export function commandHelp(command: Command, members: readonly Command[] = []): string {
  const usage = ["longhaul", command.name, command.words, "[options]"]
    .filter((part) => part !== "")
    .join(" ");
  const rows = Object.entries(command.options).map(([name, spec]): [string, string] => [
    `--${name}${spec.short === undefined ? "" : `, -${spec.short}`}${spec.type === "string" ? ` <${spec.value ?? "value"}>` : ""}`,
    spec.help,
  ]);
  const details = command.details === undefined ? [] : ["", ...command.details];
  return [
    command.summary,
    "",
    `Usage: ${usage}`,
    ...details,
    "",
    "Options:",
    ...table([...rows, ["--help", "show this help"]]),
    ...(members.length === 0 ? [] : ["", "Commands:", ...table(members.map(rowOf))]),
    "",
  ].join("\n");
}

function rowOf(command: Command): [string, string] {
  return [`${command.name} ${command.words}`.trim(), command.summary];
}

function table(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
