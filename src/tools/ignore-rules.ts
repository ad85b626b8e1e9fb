import { compileIgnorePattern, type PathTest } from "./glob-match.js";

/** The rules of one .gitignore file, for paths below its directory. */
export interface IgnoreRules {
  /** true: ignored, false: taken back by a `!` rule, undefined: the file says nothing. */
  decide(path: readonly string[], isDirectory: boolean): boolean | undefined;
}

const maxRules = 5_000;

interface Rule {
  readonly ignored: boolean;
  readonly directoriesOnly: boolean;
  readonly test: PathTest;
}

/** gitignore(5): the last rule that matches decides; whoever walks does not enter what is ignored. */
export function parseIgnoreFile(text: string): IgnoreRules {
  const rules = text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .slice(0, maxRules)
    .map(parseRule)
    .filter((rule) => rule !== undefined)
    .toReversed();
  return {
    decide(path, isDirectory) {
      for (const { ignored, directoriesOnly, test } of rules)
        if ((isDirectory || !directoriesOnly) && test(path)) return ignored;
      return undefined;
    },
  };
}

function parseRule(line: string): Rule | undefined {
  let text = line.replace(/\r$/, "");
  // Linear, unlike /\s+$/ on a line of blanks; a blank behind a backslash stays.
  let end = text.length;
  while (text[end - 1] === " " && text[end - 2] !== "\\") end -= 1;
  text = text.slice(0, end);
  if (text === "" || text.startsWith("#") || text.length > 1_000) return undefined;
  const negated = text.startsWith("!");
  if (negated) text = text.slice(1);
  const directoriesOnly = text.endsWith("/");
  const inner = directoriesOnly ? text.slice(0, -1) : text;
  const parts = inner.split("/").filter((part) => part !== "");
  if (parts.length === 0) return undefined;
  const anchored = inner.includes("/");
  const compiled = compileIgnorePattern(parts);
  const test: PathTest = anchored ? compiled : (path) => compiled(path.slice(-1));
  return { ignored: !negated, directoriesOnly, test };
}
