import type { Client } from "@temporalio/client";
import type { Payload } from "@temporalio/common";
import type { JobRef } from "../contracts/activities.js";
import type { JobKillRequest } from "../contracts/jobs.js";
import { commands, jobWorkflowId } from "../contracts/names.js";

/** A kill waits no longer for its reason, ms. */
const patienceMs = 2_000;

/**
 * Why the job is killed: cancellation carries no text, so it stands in the last `job.kill` signal to the job's workflow
 * (spec/jobs J13). Undefined when none was given or the server does not answer.
 */
export async function killReason(
  client: Client,
  { sessionId, jobId, nonce }: Pick<JobRef, "sessionId" | "jobId" | "nonce">,
): Promise<string | undefined> {
  try {
    const handle = client.workflow.getHandle(jobWorkflowId(sessionId, jobId, nonce));
    const { events } = await client.withAbortSignal(AbortSignal.timeout(patienceMs), () =>
      client.withDeadline(Date.now() + patienceMs, () => handle.fetchHistory()),
    );
    const signal = events
      ?.map((event) => event.workflowExecutionSignaledEventAttributes)
      .findLast((one) => one?.signalName === commands.jobKill);
    const request = await decode(client, [...(signal?.input?.payloads ?? [])]);
    return typeof request?.reason === "string" ? request.reason : undefined;
  } catch {
    return undefined;
  }
}

async function decode(
  client: Client,
  payloads: readonly Payload[],
): Promise<JobKillRequest | undefined> {
  const { payloadConverter, payloadCodecs } = client.workflow.options.loadedDataConverter;
  let decoded = [...payloads];
  for (const codec of payloadCodecs) decoded = await codec.decode(decoded);
  const [first] = decoded;
  return first === undefined ? undefined : payloadConverter.fromPayload(first);
}
