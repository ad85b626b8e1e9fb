// Compiles src to dist and writes the workflow bundle; each part is skipped when its inputs have not changed.
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);

function digestOf(paths) {
  const hash = createHash("sha256");
  const visit = (path) => {
    if (!existsSync(path)) return;
    let entries;
    try {
      entries = readdirSync(path, { withFileTypes: true });
    } catch {
      hash.update(path).update("\0").update(readFileSync(path)).update("\0");
      return;
    }
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
      visit(join(path, entry.name));
  };
  for (const path of paths) visit(path);
  return hash.digest("hex");
}

function isCurrent(stamp, digest) {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === digest;
}

const sources = digestOf(["src", "tsconfig.json", "tsconfig.build.json", "package-lock.json"]);
if (!isCurrent("dist/.sources", sources)) {
  rmSync("dist/.sources", { force: true });
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
    stdio: "inherit",
  });
}

const bundled = digestOf([
  "src/contracts",
  "src/domain",
  "src/workflows",
  "src/worker/bundle.ts",
  "package-lock.json",
]);
if (!isCurrent("dist/.bundle", bundled) || !existsSync("dist/workflow-bundle.js")) {
  const { writeBundle } = await import(join(root, "dist/worker/bundle.js"));
  await writeBundle(join(root, "dist/workflow-bundle.js"));
  writeFileSync("dist/.bundle", bundled);
}
writeFileSync("dist/.sources", sources);
