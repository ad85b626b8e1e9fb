import {
  Client,
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  type ConnectionOptions,
} from "@temporalio/client";
import { LonghaulError } from "../contracts/errors.js";
import { searchAttributes, type SearchAttributeName } from "../contracts/names.js";
import { firstLine, isForbidden, isNotFound } from "./failures.js";

const connectTimeoutMs = 5000;

/** Opens a connection and checks the namespace. TEMPORAL_UNREACHABLE within 5 s, NAMESPACE_NOT_FOUND. */
export async function connectTemporal(
  options: ConnectionOptions,
  namespace: string,
): Promise<{ connection: Connection; client: Client }> {
  const connection = openConnection(options);
  try {
    await connection.ensureConnected();
    await checkNamespace(connection, namespace, options.address ?? "localhost:7233");
  } catch (error) {
    await connection.close().catch(() => undefined);
    if (error instanceof LonghaulError) throw error;
    throw unreachable(options.address, error);
  }
  return { connection, client: new Client({ connection, namespace }) };
}

/** The attributes of `searchAttributes` that the namespace has, with the right type; none where asking is not allowed. */
export async function registeredAttributes(
  connection: Connection,
  namespace: string,
): Promise<readonly SearchAttributeName[]> {
  try {
    const answer = await connection.withDeadline(Date.now() + connectTimeoutMs, () =>
      connection.operatorService.listSearchAttributes({ namespace }),
    );
    return attributeNames.filter(
      (name) => Number(answer.customAttributes[name]) === indexedTypes[searchAttributes[name]],
    );
  } catch (error) {
    if (isForbidden(error)) return [];
    throw new LonghaulError(
      "TEMPORAL_UNREACHABLE",
      `could not ask Temporal for its search attributes: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- keys of a literal
const attributeNames = Object.keys(searchAttributes) as SearchAttributeName[];
/** `INDEXED_VALUE_TYPE_…` of the API. */
const indexedTypes = { Keyword: 2, Int: 3, Datetime: 6 } as const;

function openConnection(options: ConnectionOptions): Connection {
  try {
    return Connection.lazy({
      connectTimeout: connectTimeoutMs,
      interceptors: [retryStartsOnly],
      ...options,
      // A page of a history with large replies goes beyond the 4 MB that are the default.
      channelArgs: { "grpc.max_receive_message_length": -1, ...options.channelArgs },
    });
  } catch (error) {
    throw new LonghaulError("INVALID_CONFIG", `Temporal connection options: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

type Interceptor = ReturnType<typeof makeGrpcRetryInterceptor>;

const retrying = makeGrpcRetryInterceptor(defaultGrpcRetryOptions());
const once = makeGrpcRetryInterceptor({ retryableDecider: () => false, delayFunction: () => 0 });

/**
 * This client retries by itself, so that it knows why a call fails. Only a start is retried below it: there the same
 * request id must be sent again, else a start whose answer was lost looks like a session that existed before.
 */
const retryStartsOnly: Interceptor = (options, nextCall) =>
  options.method_definition.path.endsWith("/StartWorkflowExecution")
    ? retrying(options, nextCall)
    : once(options, nextCall);

async function checkNamespace(
  connection: Connection,
  namespace: string,
  address: string,
): Promise<void> {
  try {
    await connection.withDeadline(Date.now() + connectTimeoutMs, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
  } catch (error) {
    if (isForbidden(error)) return;
    if (!isNotFound(error)) throw error;
    throw new LonghaulError(
      "NAMESPACE_NOT_FOUND",
      `namespace ${JSON.stringify(namespace)} does not exist at ${address}; create it (temporal operator namespace create -n ${namespace}) or name another one`,
      { cause: error },
    );
  }
}

function unreachable(address: string | undefined, error: unknown): LonghaulError {
  return new LonghaulError(
    "TEMPORAL_UNREACHABLE",
    `no Temporal server answered at ${address ?? "localhost:7233"} (${messageOf(error)}); start it (longhaul server start) or correct TEMPORAL_ADDRESS`,
    { cause: error },
  );
}

function messageOf(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return firstLine(inner instanceof Error ? inner.message : String(inner));
}
