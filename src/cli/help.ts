import type { Command } from "./command.js";

/** `longhaul --help`. */
export function overview(commands: readonly Command[]): string {
  const rows = commands.map((command): [string, string] => [
    `${command.name} ${command.words}`.trim(),
    command.summary,
  ]);
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
  const rows = commands
    .filter((command) => command.name.startsWith(`${group} `))
    .map((command): [string, string] => [
      `${command.name} ${command.words}`.trim(),
      command.summary,
    ]);
  return [`Usage: longhaul ${group} <command> [options]`, "", "Commands:", ...table(rows), ""].join(
    "\n",
  );
}

/** `longhaul <command> --help`. */
export function commandHelp(command: Command): string {
  const usage = ["longhaul", command.name, command.words, "[options]"]
    .filter((part) => part !== "")
    .join(" ");
  const rows = Object.entries(command.options).map(([name, spec]): [string, string] => [
    spec.type === "string" ? `--${name} <${spec.value ?? "value"}>` : `--${name}`,
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
    "",
  ].join("\n");
}

function table(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
