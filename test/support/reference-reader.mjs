/**
 * Runs where the published packages of the reference harness are installed. `read <root> <log>`: what it makes of an exported log,
 * as JSON {header, events, messages}, or {refused}; `write <root> <log>`: the same log as it writes it.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
/** They are no dependency of this project. */
const published = (name) => import(`@deepseek-ai/${name}`);

const { Context } = await published("cordis");
const { default: SessionStore } = await published("dsh-session");
const { default: JsonlSessionPersistence } = await published("dsh-session-persistence-jsonl");
const [, , mode, root, log] = process.argv;
const text = readFileSync(log, "utf8");
const [first, ...lines] = text.trimEnd().split("\n");
const { type: _, ...header } = JSON.parse(first);
const context = new Context();
await context.plugin(SessionStore);
await context.plugin(JsonlSessionPersistence, { root, compression: "none" });
const persistence = context.get("sessionPersistence");
const { path } = persistence.locate(header);

process.stdout.write(await (mode === "write" ? written() : read()));
process.exit(0);

async function read() {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  try {
    const { meta, events } = await persistence.inspect(header.id);
    const { session } = await persistence.prepare(header.id);
    return JSON.stringify({ header: meta, events, messages: session.deriveMessages() });
  } catch (error) {
    return JSON.stringify({ refused: `${error.name}: ${error.message}` });
  }
}

async function written() {
  await persistence.create(header);
  await persistence.append(
    header.id,
    lines.map((line) => JSON.parse(line)),
  );
  return readFileSync(path, "utf8");
}
