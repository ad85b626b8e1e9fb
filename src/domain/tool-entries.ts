import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { ToolCallBlock } from "../contracts/content.js";
import type { NewEntry } from "../contracts/log.js";
import type { ArgumentsRef, ToolOutcome } from "../contracts/tools.js";
import type { PolicyContext } from "./policy.js";

/** How a tool call is named, referred to and logged. */

/** Arguments up to this many UTF-8 bytes travel in the activity's input; larger ones by reference (design D2). */
export const inlineArgumentBytes = 256;

/** `<turn>.<step>.<callId>`: the claim on disk and the idempotency key (design D6). */
export function claimOf(context: PolicyContext, block: ToolCallBlock): string {
  return `${context.turn}.${context.step}.${block.callId}`;
}

/** The claim, so that people find the call; a model's odd id does not become the id of an activity. */
export function keyOf(context: PolicyContext, block: ToolCallBlock, index: number): string {
  if (/^[\x21-\x7e]{1,200}$/u.test(block.callId)) return `tool/${claimOf(context, block)}`;
  return `tool/${context.turn}.${context.step}/${index + 1}`;
}

/** Its arguments, or where they stand in the log. */
export function argumentsRef(raw: string, seq: number): ArgumentsRef {
  const bytes = utf8ToBytes(raw);
  if (bytes.length <= inlineArgumentBytes) return { inline: raw };
  return { seq, bytes: bytes.length, digest: bytesToHex(sha256(bytes)) };
}

/** The one result of a call whose `tool/call` has this `seq`. */
export function resultEntry(
  context: PolicyContext,
  { block, callSeq }: { readonly block: ToolCallBlock; readonly callSeq: number },
  outcome: ToolOutcome,
): NewEntry {
  const { turn, step } = context;
  const { callId } = block;
  const { content, isError, images, error, meta } = outcome;
  return {
    type: "tool/result",
    surfaceOp: "append",
    sourceEventSeqs: [callSeq],
    data: {
      turn,
      step,
      message: {
        id: `r/${claimOf(context, block)}`,
        role: "user",
        content: [
          {
            type: "tool-result",
            callId,
            content,
            isError,
            ...(images === undefined ? {} : { images }),
          },
        ],
        source: { kind: "tool", callId },
      },
      ...(error === undefined ? {} : { error }),
      ...(meta === undefined ? {} : { meta }),
    },
  };
}
