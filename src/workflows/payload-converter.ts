import { defaultPayloadConverter, type PayloadConverter } from "@temporalio/common";

/**
 * What no converter can read becomes text that no command accepts, so that a signal typed wrongly in Temporal UI is
 * refused like any other bad input: a converter that throws fails the workflow task again and again, and the session
 * is stuck for good.
 */
export const payloadConverter: PayloadConverter = {
  toPayload: (value) => defaultPayloadConverter.toPayload(value),
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the interface's; each command checks what comes
  fromPayload<T>(payload: Parameters<PayloadConverter["fromPayload"]>[0]): T {
    try {
      return defaultPayloadConverter.fromPayload<T>(payload);
    } catch {
      return "a payload that cannot be read" as T;
    }
  },
};
