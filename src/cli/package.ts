import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A file that is shipped with the package; the same from src and from dist. */
export function packaged(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

export const packageVersion: string = versionOf(
  JSON.parse(readFileSync(packaged("package.json"), "utf8")),
);

function versionOf(value: unknown): string {
  const version: unknown =
    typeof value === "object" && value !== null && "version" in value ? value.version : undefined;
  return typeof version === "string" ? version : "unknown";
}
