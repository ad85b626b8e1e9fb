import { clusterFromEnvironment, type Cluster } from "./cluster.js";
import { findBinary, type FindBinary, type FoundBinary } from "./find-binary.js";

export type ResolvedServer =
  | ({ readonly kind: "cluster" } & Cluster)
  | ({ readonly kind: "binary" } & FoundBinary);

/**
 * Decides which Temporal server to use (design D14): the cluster that the environment names, else a binary
 * to run. Starts and contacts nothing. Throws INVALID_CONFIG or TEMPORAL_NOT_FOUND.
 */
export async function resolveServer(request: FindBinary): Promise<ResolvedServer> {
  const cluster = clusterFromEnvironment(request.env);
  if (cluster !== undefined) return { kind: "cluster", ...cluster };
  return { kind: "binary", ...(await findBinary(request)) };
}
