import { homedir, hostname } from "node:os";

interface Json {
  [key: string]: unknown;
}

/**
 * Takes out of an exported history what names the machine it was recorded on: identities, stack traces. Throws when
 * something is left, also inside payloads.
 */
export function scrubHistory(json: string, project: string): string {
  const { events = [] } = JSON.parse(json) as { readonly events?: readonly unknown[] };
  const lines = events.map((event) => JSON.stringify(scrub(event)));
  const text = `{"events":[\n${lines.join(",\n")}\n]}\n`;
  const whole = `${text}\n${payloadsOf(events).join("\n")}`;
  for (const name of [hostname(), project, ...(homedir() === "/" ? [] : [`${homedir()}/`])]) {
    if (whole.includes(name)) throw new Error(`the history still names ${name}`);
  }
  return text;
}

function scrub(value: unknown): unknown {
  if (typeof value === "string")
    return value
      .replaceAll(`${process.pid}@${hostname()}`, "recorder")
      .replaceAll(hostname(), "recorder");
  if (Array.isArray(value)) return value.map(scrub);
  if (typeof value !== "object" || value === null) return value;
  const result: Json = {};
  for (const [key, inner] of Object.entries(value)) {
    if (key === "stackTrace") continue;
    result[key] = key === "identity" ? "recorder" : scrub(inner);
  }
  return result;
}

function payloadsOf(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "data" && typeof inner === "string"
      ? [Buffer.from(inner, "base64").toString("utf8")]
      : payloadsOf(inner),
  );
}
