import type { scenarioSchema } from "../../src/models/scenario.js";
import type * as z from "zod";

/** A scenario as it is written in a file, without the name. */
export type ScenarioInput = Omit<z.input<typeof scenarioSchema>, "name">;
