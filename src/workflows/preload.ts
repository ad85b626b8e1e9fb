/**
 * Loaded once per worker and shared, frozen, by all sessions, and with it what it imports of the SDK: like the rules in
 * domain, none of these modules keeps state of its own. The index, which names the workflow types, stays each session's.
 */
export * as session from "./session.js";
export * as job from "./job.js";
