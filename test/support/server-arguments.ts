import { searchAttributes } from "../../src/contracts/names.js";
import { dynamicConfig } from "../../src/server/launch.js";

/** The settings the product gives its own server (design D14), and its search attributes. */
export function serverArguments(): string[] {
  return [
    ...dynamicConfig.flatMap((value) => ["--dynamic-config-value", value]),
    ...Object.entries(searchAttributes).flatMap(([name, type]) => [
      "--search-attribute",
      `${name}=${type}`,
    ]),
  ];
}
