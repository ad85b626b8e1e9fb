import { fieldsOf } from "./fields.js";

/** What is wrong with `timeContext` of a configuration; undefined when nothing is. */
export function timeContextProblem(value: unknown): string | undefined {
  if (value === undefined || typeof value === "boolean") return undefined;
  const { refreshIntervalMs, ...rest } = fieldsOf(value);
  if (Object.keys(rest).length > 0)
    return `\`timeContext\` has no key ${JSON.stringify(Object.keys(rest)[0])}`;
  return Number.isSafeInteger(refreshIntervalMs) && Number(refreshIntervalMs) >= 0
    ? undefined
    : "`timeContext` is true, false or {refreshIntervalMs}, a whole number from 0";
}
