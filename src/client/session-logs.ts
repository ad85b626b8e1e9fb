import type { Client } from "@temporalio/client";
import type { Archive } from "../contracts/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import type { Store } from "../contracts/store.js";
import { exporter, exportHeader } from "../domain/log-text.js";
import { openArchive } from "../store/archive.js";
import type { Bounded } from "./attempts.js";
import { planForking, planImport, type SeedDeps, type Seeding } from "./seeding.js";
import type { SessionReader } from "./session-reader.js";
import type { ForkOptions, ImportNotes, ImportOptions } from "./types.js";
import { verifySession, type VerifyReport } from "./verify.js";
import type { Wire } from "./wire.js";

interface SessionLogsDeps {
  readonly client: Client;
  readonly bounds: Bounded;
  /** With the archive behind it. */
  readonly wire: Wire;
  /** Straight to Temporal. */
  readonly live: Wire;
  readonly store: Store | undefined;
  readonly archive: Archive | undefined;
  readonly timeoutMs: number;
  session(id: string): Pick<SessionReader, "log" | "view">;
}

/** What is done with the whole log of a session: fork, export, import, verify. */
export class SessionLogs {
  readonly #deps: SessionLogsDeps;

  constructor(deps: SessionLogsDeps) {
    this.#deps = deps;
  }

  async fork(source: string, options: ForkOptions): Promise<Seeding> {
    const deps = this.#seedDeps("a fork");
    const entries: LogEntry[] = [];
    for await (const entry of this.#deps.session(source).log()) entries.push(entry);
    return planForking(deps, source, entries, options);
  }

  async *export(id: string): AsyncGenerator<string, void, undefined> {
    const session = this.#deps.session(id);
    const { header, lastSeq } = await session.view();
    yield exportHeader(header);
    const lineOf = exporter();
    for await (const entry of session.log()) {
      if (entry.seq > lastSeq) return;
      yield lineOf(entry);
    }
  }

  import(text: string, options: ImportOptions): Seeding & { readonly notes: ImportNotes } {
    return planImport(this.#seedDeps("an import"), text, options);
  }

  verify(id: string): Promise<VerifyReport> {
    const { client, bounds, live, store, timeoutMs } = this.#deps;
    const archive = store && openArchive(store);
    return verifySession({ client, bounds, wire: live, archive, timeoutMs }, id);
  }

  #seedDeps(what: string): SeedDeps {
    const { wire, archive, store } = this.#deps;
    if (archive !== undefined && store !== undefined)
      return { wire, archive, store, now: () => Date.now() };
    throw new LonghaulError(
      "ARCHIVE_UNAVAILABLE",
      `${what} puts the log it begins with into the store, and this client was connected without one; give LonghaulClient.connect the store of the workers`,
    );
  }
}
