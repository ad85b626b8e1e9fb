import * as z from "zod";

import { defineTool } from "./define.js";
import { compileGlob } from "./glob-match.js";
import { searchPlace, searchTimeMs, stopAfter } from "./search-place.js";
import { failed } from "./file-bytes.js";
import { walkFiles, type WalkReport } from "./walk.js";

const maxPaths = 1_000;

/** Finds files by name. */
export const globTool = defineTool({
  name: "glob",
  description:
    "Find files by a glob pattern such as `src/**/*.{ts,tsx}`, relative to `path`. Lists paths in the order of their names. Files that .gitignore names, symbolic links and .git are left out; names that begin with a dot only match where the pattern has the dot.",
  parameters: z.object({
    pattern: z.string().min(1).max(1_000).describe("Glob; `**` stands for any directories."),
    path: z.string().min(1).optional().describe("Directory to search, default the workspace."),
  }),
  parallel: true,
  idempotent: true,
  async execute({ pattern, path = "." }, context) {
    if (pattern.startsWith("/"))
      throw failed(`pattern ${pattern} is absolute; give the directory as path`);
    if (pattern.split("/").includes(".."))
      throw failed(`pattern ${pattern} goes up; give the directory as path`);
    const matches = compileGlob(pattern);
    const place = await searchPlace(context, path);
    if (place.kind === "file") throw failed(`${path} is a file; name a directory`);
    const stop = stopAfter(context.signal, searchTimeMs);
    const report: WalkReport = { files: 0, unreadable: 0 };
    const found: string[] = [];
    const hidden = /(?:^|[/{,])\\?\./.test(pattern);
    const walk = { root: place.root, rulesFrom: place.rulesFrom, hidden, stop };
    search: for await (const batch of walkFiles(walk, report)) {
      for (const parts of batch) {
        if (matches(parts)) found.push(place.show(parts));
        if (found.length > maxPaths) break search;
      }
    }
    context.signal.throwIfAborted();
    const notes = [];
    if (found.length > maxPaths)
      notes.push(`[first ${maxPaths} paths; there are more: make the pattern narrower]`);
    else if (found.length === 0) notes.push(`no file matches ${pattern} in ${place.name}`);
    if (stop.aborted)
      notes.push(
        `[stopped after ${searchTimeMs / 1000} s: the list is not complete; name a smaller path]`,
      );
    if (report.unreadable > 0) notes.push(`[${report.unreadable} directories could not be read]`);
    const shown = found.slice(0, maxPaths);
    return { text: [...shown, ...notes].join("\n"), meta: { paths: shown.length } };
  },
});
