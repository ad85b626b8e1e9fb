import type { WorkerDeployment } from "../../worker/versioning.js";
import { LonghaulError } from "../../contracts/errors.js";
import type { Io } from "../io.js";
import { usage } from "../parse.js";

export const deploymentOption = {
  deployment: {
    type: "string",
    value: "name",
    help: "name of the deployment (default LONGHAUL_DEPLOYMENT)",
  },
} as const;

/** The build a worker is of, by flags, else the environment; undefined for none. USAGE and INVALID_CONFIG for a half of it. */
export function workerDeploymentOf(
  { env }: Io,
  options: { readonly deployment?: string; readonly "build-id"?: string },
): WorkerDeployment | undefined {
  const name = deploymentNameOf({ env }, options.deployment);
  const build = given(options["build-id"], env["LONGHAUL_BUILD_ID"]);
  if (name === undefined && build === undefined) return undefined;
  const flagged = options.deployment !== undefined || options["build-id"] !== undefined;
  if (name === undefined || build === undefined) {
    const [has, lacks] =
      name === undefined
        ? ["a build id", "--deployment (LONGHAUL_DEPLOYMENT)"]
        : ["a deployment", "--build-id (LONGHAUL_BUILD_ID)"];
    const message = `a versioned worker expected a deployment and a build id, got ${has} alone; give ${lacks} too, or neither`;
    throw flagged ? usage(message) : new LonghaulError("INVALID_CONFIG", message);
  }
  return { name, buildId: buildIdOf(build, flag("build-id", options["build-id"])) };
}

/** The name of a deployment, by its flag, else the environment. USAGE, INVALID_CONFIG. */
export function deploymentNameOf(
  { env }: Pick<Io, "env">,
  flagged: string | undefined,
): string | undefined {
  const name = given(flagged, env["LONGHAUL_DEPLOYMENT"]);
  if (name === undefined || /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/.test(name)) return name;
  throw wrong(
    flag("deployment", flagged),
    `expected 1 to 63 letters, digits, "_" or "-", got ${JSON.stringify(name)}`,
  );
}

/** Checks the id of a build, which `from` gave. USAGE, INVALID_CONFIG. */
export function buildIdOf(text: string, from: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/.test(text)) return text;
  throw wrong(
    from,
    `expected 1 to 128 letters, digits, ".", "_", "+" or "-", got ${JSON.stringify(text)}`,
  );
}

function given(flagged: string | undefined, variable: string | undefined): string | undefined {
  return flagged ?? (variable === undefined || variable.trim() === "" ? undefined : variable);
}

function flag(name: "deployment" | "build-id", flagged: string | undefined): string {
  if (flagged !== undefined) return `--${name}`;
  return `LONGHAUL_${name.toUpperCase().replace("-", "_")}`;
}

function wrong(from: string, message: string): LonghaulError {
  const text = `${from} ${message}`;
  return from.startsWith("LONGHAUL_") ? new LonghaulError("INVALID_CONFIG", text) : usage(text);
}
