import * as z from "zod";

import { defineTool } from "./define.js";
import { failed } from "./file-bytes.js";
import { compileGlob, type PathTest } from "./glob-match.js";
import type { LineSearch } from "./grep-engine.js";
import { openOwnSearch } from "./grep-own.js";
import { compileLinePattern } from "./grep-pattern.js";
import { openRipgrepSearch } from "./grep-ripgrep.js";
import { collectMatches, maxFileBytes } from "./grep-result.js";
import { type SearchPlace, searchPlace, searchTimeMs, stopAfter } from "./search-place.js";
import { walkFiles, type WalkReport } from "./walk.js";

const defaultResults = 200;
const maxResultsLimit = 2_000;

export interface GrepOptions {
  /** Which engine looks into the files. Default `auto`: ripgrep where it is on PATH. Both find the same. */
  readonly engine?: "auto" | "own";
}

/** Finds lines of text files; with or without ripgrep the result is the same. */
export const grepTool = defineGrep();

/** `grepTool` with a choice of engine. */
export function defineGrep({ engine = "auto" }: GrepOptions = {}) {
  return defineTool({
    name: "grep",
    description:
      "Search text files for lines that match a regular expression (RE2 syntax, no look-around or back-references). Gives `path:line:text`, context lines as `path-line-text`, in the order of the paths. Files that .gitignore names, hidden and binary files, files over 10 MB and symbolic links are left out.",
    parameters: z.object({
      pattern: z.string().min(1).describe("Regular expression, matched within each line."),
      path: z
        .string()
        .min(1)
        .optional()
        .describe("File or directory to search, default the workspace."),
      glob: z
        .string()
        .min(1)
        .optional()
        .describe(
          "Only files like `*.ts` (anywhere) or `src/**/*.ts` (from `path`); `!` in front excludes.",
        ),
      ignoreCase: z.boolean().optional().describe("Ignore case, default false."),
      context: z.int().min(0).max(10).optional().describe("Lines around each match, default 0."),
      maxResults: z
        .int()
        .min(1)
        .max(maxResultsLimit)
        .optional()
        .describe(`Most matching lines to give, default ${defaultResults}.`),
    }),
    parallel: true,
    idempotent: true,
    async execute(args, context) {
      const { pattern, path = ".", ignoreCase = false, maxResults = defaultResults } = args;
      const compiled = compileLinePattern(pattern, ignoreCase);
      const wanted = args.glob === undefined ? undefined : fileFilter(args.glob);
      const place = await searchPlace(context, path);
      const stop = stopAfter(context.signal, searchTimeMs);
      const report: WalkReport = { files: 0, unreadable: 0 };
      const own = (): LineSearch => openOwnSearch(compiled, maxFileBytes, stop);
      const search =
        engine === "own" ? own() : openRipgrepSearch(compiled, maxFileBytes, stop, own);
      try {
        const found = await collectMatches({
          batches: filesOf(place, stop, report, wanted),
          search,
          place,
          maxResults,
          around: args.context ?? 0,
        });
        context.signal.throwIfAborted();
        const notes = [];
        if (found.matches === 0)
          notes.push(`no line matches in ${found.searched} files of ${place.name}`);
        else if (found.more)
          notes.push(
            `[first ${found.matches} matching lines, in ${found.files} files; there are more: make the search narrower${maxResults < maxResultsLimit ? " or raise maxResults" : ""}]`,
          );
        else notes.push(`[${found.matches} matching lines in ${found.files} files]`);
        if (stop.aborted)
          notes.push(
            `[stopped after ${searchTimeMs / 1000} s: the result is not complete; name a smaller path]`,
          );
        if (report.unreadable > 0)
          notes.push(`[${report.unreadable} directories could not be read]`);
        return {
          text: [...found.lines, ...notes].join("\n"),
          meta: { matches: found.matches, files: found.files },
        };
      } catch (error) {
        context.signal.throwIfAborted();
        throw error;
      } finally {
        await search.close();
      }
    },
  });
}

/** A glob without a slash is asked about the name alone. */
function fileFilter(glob: string): PathTest {
  const negated = glob.startsWith("!");
  const text = negated ? glob.slice(1) : glob;
  if (text === "") throw failed("glob ! names nothing");
  const test = compileGlob(text);
  const byName = !text.includes("/");
  return (parts) => test(byName ? parts.slice(-1) : parts) !== negated;
}

/** The files to search; one that is named is searched whatever .gitignore says. */
async function* filesOf(
  place: SearchPlace,
  stop: AbortSignal,
  report: WalkReport,
  wanted: PathTest | undefined,
): AsyncGenerator<readonly (readonly string[])[]> {
  if (place.kind === "file") {
    yield [[place.file]];
    return;
  }
  const { root, rulesFrom } = place;
  for await (const batch of walkFiles({ root, rulesFrom, hidden: false, stop }, report))
    yield wanted === undefined ? batch : batch.filter(wanted);
}
