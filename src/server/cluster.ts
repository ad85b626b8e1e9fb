import { accessSync } from "node:fs";
import { Connection, type ConnectionOptions } from "@temporalio/client";
import { loadClientConnectConfig } from "@temporalio/envconfig";
import { LonghaulError } from "../contracts/errors.js";
import { setting, type Environment } from "./environment.js";

/** What both `Connection.connect` and `NativeConnection.connect` take. */
export interface ClusterConnection {
  readonly address: string;
  readonly tls?: NonNullable<ConnectionOptions["tls"]>;
  readonly apiKey?: string;
  readonly metadata?: NonNullable<ConnectionOptions["metadata"]>;
}

/** A Temporal cluster that somebody else runs. */
export interface Cluster {
  readonly address: string;
  readonly namespace: string;
  readonly connection: ClusterConnection;
  /** The settings that named it, for messages. */
  readonly namedBy: string;
}

/**
 * The cluster that the environment names by TEMPORAL_ADDRESS, TEMPORAL_PROFILE or TEMPORAL_CONFIG_FILE;
 * undefined when it names none. The settings (namespace, TLS, API key) are read as Temporal's own tools
 * read them, the default configuration file included. That file alone does not turn the embedded server
 * off. Throws INVALID_CONFIG when they cannot be read.
 */
export function clusterFromEnvironment(env: Environment): Cluster | undefined {
  const naming = ["TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"];
  const names = naming.filter((name) => setting(env, name) !== undefined);
  if (names.length === 0) return undefined;
  const namedBy = names.join(", ");
  const { connectionOptions, namespace } = loadSettings(env, namedBy);
  const { address = "127.0.0.1:7233", tls, apiKey, metadata } = connectionOptions;
  const connection: ClusterConnection = {
    address,
    ...(tls === undefined || tls === null ? {} : { tls }),
    ...(typeof apiKey === "string" ? { apiKey } : {}),
    ...(metadata === undefined ? {} : { metadata }),
  };
  return { address, namespace: namespace ?? "default", connection, namedBy };
}

/**
 * Checks that the cluster answers and has the namespace. Throws TEMPORAL_UNREACHABLE or
 * NAMESPACE_NOT_FOUND.
 */
export async function verifyCluster(cluster: Cluster, timeoutMs = 5_000): Promise<void> {
  const { address, namespace, namedBy } = cluster;
  let connection: Connection | undefined;
  try {
    connection = await Connection.connect({ ...cluster.connection, connectTimeout: timeoutMs });
    const { workflowService } = connection;
    await connection.withDeadline(Date.now() + timeoutMs, () =>
      workflowService.describeNamespace({ namespace }),
    );
  } catch (error) {
    const code = grpcCode(error);
    if (code === grpcNotFound) {
      throw new LonghaulError(
        "NAMESPACE_NOT_FOUND",
        `Temporal at ${address} has no namespace "${namespace}". Create it there, or set TEMPORAL_NAMESPACE to one it has.`,
        { cause: error },
      );
    }
    if (code === grpcPermissionDenied || code === grpcUnauthenticated) {
      throw new LonghaulError(
        "TEMPORAL_UNREACHABLE",
        `Temporal at ${address} refused access to namespace "${namespace}" (${reasonOf(error)}). Check the API key or certificate, and TEMPORAL_NAMESPACE.`,
        { cause: error },
      );
    }
    throw new LonghaulError(
      "TEMPORAL_UNREACHABLE",
      `No Temporal server answers at ${address}, named by ${namedBy} (${reasonOf(error)}). Start it, correct the address, or unset ${namedBy} to use the embedded server.`,
      { cause: error },
    );
  } finally {
    await connection?.close();
  }
}

const grpcNotFound = 5;
const grpcPermissionDenied = 7;
const grpcUnauthenticated = 16;

function loadSettings(
  env: Environment,
  namedBy: string,
): ReturnType<typeof loadClientConnectConfig> {
  const set = Object.entries(env).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const file = setting(env, "TEMPORAL_CONFIG_FILE");
  try {
    // A missing file would count as an empty one.
    if (file !== undefined) accessSync(file);
    return loadClientConnectConfig({ overrideEnvVars: Object.fromEntries(set) });
  } catch (error) {
    throw new LonghaulError(
      "INVALID_CONFIG",
      `The Temporal settings named by ${namedBy} cannot be used: ${reasonOf(error)}. Correct them, or unset ${namedBy} to use the embedded server.`,
      { cause: error },
    );
  }
}

/** The gRPC status of an error or of one of its causes. */
function grpcCode(error: unknown): number | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "number") return at.code;
  }
  return undefined;
}

export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split("\n", 1)[0]?.slice(0, 300) ?? "";
}
