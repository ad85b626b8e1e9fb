import { mkdirSync, renameSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const directory = join(root, "node_modules/.longhaul/scripts");
const compiled = new Map<string, string>();

/**
 * Path of a script as one JavaScript file, compiled on first use: a process that runs it starts several times as fast as with
 * a loader that compiles every module.
 */
export function compiledScript(script: URL): string {
  const found = compiled.get(script.href);
  if (found !== undefined) return found;
  const source = fileURLToPath(script);
  const path = join(
    directory,
    relative(root, source).replaceAll("/", "-").replace(/\.ts$/u, ".mjs"),
  );
  const own = path.replace(/\.mjs$/u, `.${process.pid}.mjs`);
  mkdirSync(directory, { recursive: true });
  buildSync({
    entryPoints: [source],
    outfile: own,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    logLevel: "error",
  });
  // Other test files compile it too, and may run it now.
  renameSync(own, path);
  compiled.set(script.href, path);
  return path;
}
