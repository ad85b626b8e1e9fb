import { builtinPolicy } from "../domain/policy.js";
import { createSession } from "./session.js";

export const session = createSession(builtinPolicy);

export { job } from "./job.js";
