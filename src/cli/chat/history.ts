import { chmod, mkdir, open, readFile, rename, writeFile } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { dirname } from "node:path";

const kept = 1_000;

/** What was typed before, newest last, and where a person is in it. */
export class History {
  readonly #entries: string[];
  readonly #onAdd: (text: string) => void;
  /** Index of the entry shown; `#entries.length` stands for the text that is being written. */
  #at: number;
  #draft = "";

  constructor(entries: readonly string[], onAdd: (text: string) => void = () => {}) {
    this.#entries = [...entries];
    this.#onAdd = onAdd;
    this.#at = this.#entries.length;
  }

  /** Adds a text unless it is the last one again. */
  add(text: string): void {
    if (this.#entries.at(-1) !== text) {
      this.#entries.push(text);
      this.#onAdd(text);
    }
    this.#at = this.#entries.length;
    this.#draft = "";
  }

  older(current: string): string | undefined {
    if (this.#at === 0) return undefined;
    if (this.#at === this.#entries.length) this.#draft = current;
    this.#at -= 1;
    return this.#entries[this.#at];
  }

  newer(): string | undefined {
    if (this.#at >= this.#entries.length) return undefined;
    this.#at += 1;
    return this.#entries[this.#at] ?? this.#draft;
  }
}

/**
 * The history kept in a file, one JSON text a line, readable by its owner only. A file that cannot be read or written
 * costs the history, not the chat.
 */
export async function openHistory(path: string): Promise<KeptHistory> {
  const entries = await readEntries(path);
  let writing = Promise.resolve();
  const history = new History(entries.slice(-kept), (text) => {
    writing = writing.then(() => append(path, `${JSON.stringify(text)}\n`)).catch(() => undefined);
  });
  return { history, written: () => writing };
}

export interface KeptHistory {
  readonly history: History;
  /** Resolves when what was added is in the file. */
  readonly written: () => Promise<void>;
}

async function readEntries(path: string): Promise<readonly string[]> {
  try {
    const lines = (await readFile(path, "utf8")).split("\n");
    const entries = lines.flatMap(entryOf);
    if (entries.length > 2 * kept) await replace(path, entries.slice(-kept));
    return entries;
  } catch {
    return [];
  }
}

function entryOf(line: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "string" && value !== "" ? [value] : [];
  } catch {
    return [];
  }
}

async function append(path: string, line: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, "a", 0o600);
  try {
    await chmod(path, 0o600);
    await file.write(line);
  } finally {
    await file.close();
  }
}

async function replace(path: string, entries: readonly string[]): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  const text = entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
  await writeFile(draft, text, { mode: 0o600, flag: "wx" });
  await rename(draft, path);
}
