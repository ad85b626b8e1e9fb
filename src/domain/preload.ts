/**
 * Loaded once per worker and shared, frozen, by all sessions: the pure rules and the hash they use. None of these
 * modules keeps state. Importing them here is all it takes.
 */
export * as commands from "./commands.js";
export * as details from "./details.js";
export * as policy from "./policy.js";
export * as session from "./session.js";
export * as surface from "./surface.js";
export * as turn from "./turn.js";
export * as views from "./views.js";
