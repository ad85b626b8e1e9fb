import { searchAttributes } from "../../src/contracts/names.js";
import { dynamicConfig } from "../../src/server/launch.js";
import { timeSkipping } from "./time-skipping.js";

/**
 * The settings the product gives its own server (design D14), and its search attributes. Without worker commands a cancel
 * reaches an activity with its next heartbeat, as on a server that does not have them.
 */
export function serverArguments({ workerCommands = true } = {}): string[] {
  const settings = dynamicConfig.filter((value) => workerCommands || !/WorkerCommand/u.test(value));
  return [
    ...[...settings, timeSkipping].flatMap((value) => ["--dynamic-config-value", value]),
    ...Object.entries(searchAttributes).flatMap(([name, type]) => [
      "--search-attribute",
      `${name}=${type}`,
    ]),
  ];
}
