import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";

export interface JobProcess {
  readonly pid: number;
  readonly command: string;
  /** `job/<id>/<nonce>` */
  readonly job: string;
}

/** Processes of background jobs of a data directory, found by the marks in their environment. */
export async function jobProcesses(home: string): Promise<readonly JobProcess[]> {
  const found: JobProcess[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const environ = readQuietly(`/proc/${name}/environ`).split("\0");
    const job = environ.find((one) => one.startsWith("LONGHAUL_CALL=job/"));
    if (job === undefined || !environ.includes(`LONGHAUL_HOME=${home}`)) continue;
    const command = readQuietly(`/proc/${name}/cmdline`)
      .replaceAll(/[\0\n]/g, " ")
      .slice(0, 120);
    found.push({ pid: Number(name), command, job: job.slice("LONGHAUL_CALL=".length) });
  }
  return found;
}

function readQuietly(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
