import { createSession } from "../../../src/workflows/session.js";
import { opinionated } from "./policy.js";

/** The session workflow under a policy of its own; the type's name is the product's. */
export const session = createSession(opinionated);
