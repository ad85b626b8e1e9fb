import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { createRequire, isBuiltin, SourceMap } from "node:module";
import { tmpdir } from "node:os";
import { dirname, extname, join, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type BuildFailure, type Plugin } from "esbuild";

/** What is wrong with a user's source file, and where. */
export class SourceError extends Error {
  readonly file: string | undefined;
  /** From 1. */
  readonly line: number | undefined;

  constructor(message: string, file?: string, line?: number) {
    super(message);
    this.file = file;
    this.line = line;
  }
}

/** In development `longhaul/tools` is compiled in; a mistake found there is its caller's. */
const ownSources = fileURLToPath(new URL("..", import.meta.url));
const bundleName = "tools-bundle.mjs";

/**
 * Runs a TypeScript or JavaScript file, with what it imports by relative paths, and gives its default export. Compiled
 * beforehand rather than by a loader hook: nothing global changes, and an error is led back to its line. Packages are
 * found from the file; `longhaul/*` is always the running one, and zod its own where the file has none.
 * Throws SourceError.
 */
export async function importSource(file: string, timeoutMs: number): Promise<unknown> {
  const { code, map } = await compile(file);
  const directory = await realpath(await mkdtemp(join(tmpdir(), "longhaul-tools-")));
  try {
    const bundle = join(directory, bundleName);
    await writeFile(bundle, code);
    const loading: Promise<{ readonly default?: unknown }> = import(pathToFileURL(bundle).href);
    const module = await within(loading, timeoutMs).catch((error: unknown) => {
      throw located(error, map, file);
    });
    return module.default;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function compile(file: string): Promise<{ readonly code: string; readonly map: SourceMap }> {
  const href = JSON.stringify(pathToFileURL(file).href);
  try {
    const { outputFiles } = await build({
      entryPoints: [file],
      outfile: join(dirname(file), bundleName),
      bundle: true,
      write: false,
      platform: "node",
      format: "esm",
      target: "node20",
      sourcemap: "external",
      keepNames: true,
      logLevel: "silent",
      define: { "import.meta.url": href },
      // For files written for require.
      banner: { js: `import{createRequire as $r}from"node:module";const require=$r(${href});` },
      plugins: [packages],
    });
    const text = (end: string): string =>
      outputFiles.find(({ path }) => path.endsWith(end))?.text ?? "";
    return { code: text(".mjs"), map: new SourceMap(JSON.parse(text(".map"))) };
  } catch (error) {
    if (!isBuildFailure(error)) throw error;
    const [first] = error.errors;
    const place = first?.location;
    const name = place?.file === undefined ? undefined : resolve(place.file);
    throw new SourceError(first?.text ?? error.message, name, place?.line);
  }
}

/** Packages stay outside the bundle, under the address that the file itself would find. */
const packages: Plugin = {
  name: "packages",
  setup(bundling) {
    bundling.onResolve({ filter: /^[^./]/ }, async (asked) => {
      if (asked.pluginData === packages || asked.kind === "entry-point") return undefined;
      if (isBuiltin(asked.path)) return { path: asked.path, external: true };
      if (/^longhaul(?:\/|$)/.test(asked.path)) return ownModule(asked.path);
      const { importer, kind, resolveDir } = asked;
      const find = async (from: string) =>
        await bundling.resolve(asked.path, {
          importer,
          kind,
          resolveDir: from,
          pluginData: packages,
        });
      let found = await find(resolveDir);
      if (found.errors.length > 0 && /^zod(?:\/|$)/.test(asked.path))
        found = await find(dirname(fileURLToPath(import.meta.url)));
      if (found.errors.length > 0 || !found.path.includes(`${sep}node_modules${sep}`)) return found;
      return external(found.path);
    });
  },
};

function ownModule(name: string) {
  const extension = extname(fileURLToPath(import.meta.url));
  if (name === "longhaul/tools") {
    const path = fileURLToPath(new URL(`./define${extension}`, import.meta.url));
    return extension === ".ts" ? { path } : external(path);
  }
  return external(createRequire(import.meta.url).resolve(name));
}

function external(path: string) {
  return { path: pathToFileURL(path).href, external: true };
}

async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new SourceError(`the file did not come to its end within ${ms} ms`)),
      ms,
    );
  });
  return await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** The innermost place of the stack that lies in the user's files. */
function located(error: unknown, map: SourceMap, file: string): SourceError {
  if (error instanceof SourceError) return error;
  const message = error instanceof Error ? error.message : `it threw ${String(error)}`;
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  for (const [, line, column] of stack.matchAll(/tools-bundle\.mjs:(\d+)(?::(\d+))?/g)) {
    const place = map.findEntry(Number(line) - 1, Number(column ?? 1) - 1);
    if (!("originalSource" in place) || typeof place.originalSource !== "string") continue;
    const source = resolve(dirname(file), place.originalSource);
    if (!source.startsWith(ownSources))
      return new SourceError(message, source, place.originalLine + 1);
  }
  return new SourceError(message, file);
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && "errors" in error && Array.isArray(error.errors);
}
