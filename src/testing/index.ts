/**
 * For tests of programs that use Longhaul: a scripted model that answers from a scenario, everything else real.
 *
 * @module
 */
export { createScriptedProvider } from "../models/scripted.js";
export { parseScenario } from "../models/scenario-file.js";
export type { Scenario, ScenarioStep } from "../models/scenario.js";
