import type { ReceivedRequest } from "./protocol-server.js";
import { readCompletions, readWitnessed } from "./wire-reading.js";
import { canonical, witnessRequests } from "./witness.js";

/**
 * Differences between what a server of the chat completions protocol received from one session, in order, and what the
 * witness rebuilds from its exported log; empty when they agree, request by request.
 */
export function receivedAsWitnessed(
  log: readonly unknown[],
  received: readonly ReceivedRequest[],
): string[] {
  const witnessed = witnessRequests(log);
  const differences =
    witnessed.length === received.length
      ? []
      : [`the provider received ${received.length} requests, the log tells of ${witnessed.length}`];
  for (const [index, request] of witnessed.entries()) {
    const came = received[index];
    if (came === undefined) break;
    const before = canonical(readWitnessed(request, sentArguments));
    const after = canonical(readCompletions(came.body));
    if (before !== after) {
      const name = `request ${request.turn}.${request.step} retry ${request.retry}`;
      differences.push(`${name}: the provider received ${after}, the log says ${before}`);
      // The rest would only repeat it.
      break;
    }
  }
  return differences;
}

/** Arguments go back as they came; what is no JSON, as a JSON string. */
function sentArguments(raw: string): string {
  try {
    JSON.parse(raw);
    return raw;
  } catch {
    return JSON.stringify(raw);
  }
}
