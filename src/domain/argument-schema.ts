import type { Json, JsonObject } from "../contracts/header.js";

/** No more violations than this are collected of one call. */
const maxViolations = 100;
/** Longest text of `invalidArguments`, about: it goes into the log and to the model. */
const maxText = 4_000;

/** The arguments of a tool call: empty is `{}`, invalid JSON stays the string and so fails the schema (spec/harness §3). */
export function parseArguments(raw: string): unknown {
  if (raw.trim() === "") return {};
  try {
    return JSON.parse(raw);
  } catch {
    return raw;
  }
}

/**
 * What is wrong with the arguments of a call, in the order of the schema; empty when nothing is (spec/todo §2).
 * Understands type, required, properties, additionalProperties: false, items and enum; other keywords are left to the tool.
 * Undeclared arguments at the top are tolerated, whatever the schema says. At most 100 violations are listed.
 */
export function checkArguments(schema: JsonObject, value: unknown): string[] {
  const violations: string[] = [];
  checkValue(schema, value, "", violations);
  return violations;
}

/** `invalid arguments: …` with the violations joined by `; `; those beyond 4,000 characters are only counted. */
export function invalidArguments(violations: readonly string[]): string {
  const shown: string[] = [];
  let length = 0;
  for (const violation of violations) {
    const text = violation.length > maxText ? `${violation.slice(0, maxText)}…` : violation;
    if (shown.length > 0 && length + text.length > maxText) break;
    shown.push(text);
    length += text.length;
  }
  const hidden = violations.length - shown.length;
  if (hidden > 0) shown.push(`and ${hidden} more`);
  return `invalid arguments: ${shown.join("; ")}`;
}

function checkValue(schema: JsonObject, value: unknown, path: string, violations: string[]): void {
  if (violations.length >= maxViolations) return;
  const choices = schema["enum"];
  if (isList(choices)) {
    if (!choices.some((choice) => isSame(choice, value)))
      violations.push(`${subject(path)} must be one of ${JSON.stringify(choices)}`);
    return;
  }
  const types = typeNames(schema);
  if (types.length > 0 && !types.some((type) => hasType(type, value))) {
    violations.push(`${subject(path)} must be ${types.map(withArticle).join(" or ")}`);
    return;
  }
  if (isRecord(value)) checkObject(schema, value, path, violations);
  else if (Array.isArray(value)) checkItems(schema, value, path, violations);
}

function checkObject(
  schema: JsonObject,
  value: Record<string, unknown>,
  path: string,
  violations: string[],
): void {
  const required = schema["required"];
  if (isList(required)) {
    for (const key of required) {
      if (typeof key === "string" && !Object.hasOwn(value, key))
        violations.push(`missing required property "${join(path, key)}"`);
    }
  }
  const properties = schema["properties"];
  const declared: Record<string, unknown> = isRecord(properties) ? properties : {};
  for (const [key, inner] of Object.entries(declared)) {
    if (Object.hasOwn(value, key) && isSchema(inner))
      checkValue(inner, value[key], join(path, key), violations);
  }
  if (path === "" || schema["additionalProperties"] !== false) return;
  for (const key of Object.keys(value)) {
    if (violations.length >= maxViolations) return;
    if (!Object.hasOwn(declared, key)) {
      violations.push(
        `${subject(join(path, key))} is not a declared property (additionalProperties: false)`,
      );
    }
  }
}

function checkItems(
  schema: JsonObject,
  value: readonly unknown[],
  path: string,
  violations: string[],
): void {
  const items = schema["items"];
  if (!isSchema(items)) return;
  for (const [index, item] of value.entries()) {
    if (violations.length >= maxViolations) return;
    checkValue(items, item, `${path}[${index}]`, violations);
  }
}

function subject(path: string): string {
  return path === "" ? "arguments" : `"${path}"`;
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

function typeNames(schema: JsonObject): string[] {
  const type = schema["type"];
  const names = isList(type) ? type : [type];
  return names.filter((name) => typeof name === "string");
}

function hasType(type: string, value: unknown): boolean {
  switch (type) {
    case "object":
      return isRecord(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "number":
      return typeof value === "number";
    case "string":
      return typeof value === "string";
    case "boolean":
      return typeof value === "boolean";
    case "null":
      return value === null;
    default:
      return true;
  }
}

function withArticle(type: string): string {
  if (type === "null") return type;
  return /^[aeiou]/u.test(type) ? `an ${type}` : `a ${type}`;
}

function isSame(choice: Json, value: unknown): boolean {
  if (choice === value) return true;
  return (
    typeof choice === "object" &&
    typeof value === "object" &&
    JSON.stringify(choice) === JSON.stringify(value)
  );
}

function isList(value: unknown): value is readonly Json[] {
  return Array.isArray(value);
}

function isSchema(value: unknown): value is JsonObject {
  return isRecord(value);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
