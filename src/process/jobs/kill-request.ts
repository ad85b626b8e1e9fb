import { constants } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { type JobIdentity, supervisorAlive } from "./job-identity.js";
import { endJobProcesses } from "./seal.js";
import { type Spool, spoolFiles, spoolHas } from "./spool.js";

/** How long the supervisor may take to begin with a kill, ms; then the follower does it. */
const supervisorPatienceMs = 3_000;

/** One job's kill: asked of its supervisor, which ends it also when this process dies, and done here when that is frozen. */
export class KillRequest {
  readonly #spool: Spool;
  readonly #onFailed: (message: string) => void;
  #madeAt: number | undefined;
  #isTaken = false;
  #isFailed = false;

  constructor(spool: Spool, onFailed: (message: string) => void) {
    this.#spool = spool;
    this.#onFailed = onFailed;
  }

  get isMade(): boolean {
    return this.#madeAt !== undefined;
  }

  /** Call it again and again until the job is at its end. */
  async press(identity: JobIdentity): Promise<void> {
    const { directory } = this.#spool;
    if (this.#madeAt === undefined) {
      await writeFile(join(directory, spoolFiles.kill), "");
      await pokeSupervisor(this.#spool);
      this.#madeAt = Date.now();
    }
    this.#isTaken ||= spoolHas(directory, "stopping");
    if (!this.#isTaken && Date.now() - this.#madeAt > supervisorPatienceMs) {
      this.#isTaken = true;
      await endJobProcesses(this.#spool);
      // Frozen, it will never say that the job is over.
      if (!spoolHas(directory, "stopping") && (await supervisorAlive(identity)))
        process.kill(identity.supervisor.pid, "SIGKILL");
    }
    if (!this.#isFailed && spoolHas(directory, "stuck")) {
      this.#isFailed = true;
      this.#onFailed("a process of the job outlived KILL; look for one of another user");
    }
  }
}

/** Makes the supervisor look at once; not there any more is fine. */
export async function pokeSupervisor({ directory }: Spool): Promise<void> {
  try {
    const flags = constants.O_WRONLY | constants.O_NONBLOCK;
    const fifo = await open(join(directory, spoolFiles.poke), flags);
    try {
      await fifo.write("k");
    } finally {
      await fifo.close();
    }
  } catch {
    // It looks by itself as well, some seconds later.
  }
}
