import { LonghaulError } from "../contracts/errors.js";

/** A write that ended without a verdict, with the code of what the caller met: it may still be carried out. */
export class UndecidedError extends LonghaulError {}
