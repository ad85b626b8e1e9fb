import { builtinPolicy, type SessionPolicy } from "../../../src/domain/policy.js";

/** Decides by what the user's text says, so that one bundle serves every test. */
export const opinionated: SessionPolicy = {
  ...builtinPolicy,
  preStep(_context, messages) {
    const said = messages.flatMap((message) =>
      message.content.map((block) => (block.type === "text" ? block.text : "")),
    );
    if (said.includes("reject this")) return { kind: "reject", message: "not here" };
    if (said.includes("drop this")) return { kind: "enter", messages: [] };
    if (said.includes("choke on this")) throw new Error("choked");
    return { kind: "enter", messages };
  },
  runtimeContext: ({ turn }) => `today is day ${turn}`,
  preExecute: (context, call) =>
    call.name === "bash" && JSON.stringify(call.args).includes("forbidden")
      ? { kind: "deny", reason: "forbidden words" }
      : builtinPolicy.preExecute(context, call),
  guard: (_context, call) =>
    JSON.stringify(call.args).includes("guarded") ? "the guard says no" : undefined,
  postExecute: (_context, _call, outcome) =>
    outcome.content.some((block) => block.text.includes("secret"))
      ? { kind: "block", feedback: "the result holds a secret" }
      : { kind: "accept" },
  turnStopping: ({ turn, step }) => (turn === 1 && step === 1 ? ["say more"] : []),
};
