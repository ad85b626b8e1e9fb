import { checkLossless } from "./lossless.js";
import { isFields } from "./reference-entry.js";

/** Why a value has not this shape, beginning with the path below it; undefined when it has. */
export type Shape = (value: unknown) => string | undefined;

export const text: Shape = (value) => (typeof value === "string" ? undefined : " must be text");
export const flag: Shape = (value) =>
  typeof value === "boolean" ? undefined : " must be true or false";
export const count: Shape = (value) =>
  Number.isSafeInteger(value) && Number(value) >= 0 && !Object.is(value, -0)
    ? undefined
    : " must be a whole number from 0";
/** A whole number, -1 for none. */
export const position: Shape = (value) => (value === -1 ? undefined : count(value));
export const json: Shape = (value) =>
  checkLossless(value) === undefined ? undefined : " must be JSON";

export function oneOf(...values: readonly unknown[]): Shape {
  return (value) =>
    values.includes(value)
      ? undefined
      : ` must be ${values.map((one) => JSON.stringify(one)).join(" or ")}`;
}

export function list(of: Shape, most = Infinity): Shape {
  return (value) => {
    if (!Array.isArray(value)) return " must be a list";
    if (value.length > most) return ` has ${value.length} items, at most ${most}`;
    return firstProblem(value.map((item, index) => [`[${index}]`, item, of]));
  };
}

/** Exactly these items. */
export function tuple(...of: readonly Shape[]): Shape {
  return (value) =>
    Array.isArray(value) && value.length === of.length
      ? firstProblem(of.map((shape, index) => [`[${index}]`, value[index], shape]))
      : ` must be a list of ${of.length}`;
}

/** Any keys, each with this value. */
export function table(of: Shape): Shape {
  return (value) =>
    isFields(value)
      ? firstProblem(Object.entries(value).map(([key, inner]) => [`.${key}`, inner, of]))
      : " must be an object";
}

interface Keys {
  readonly [key: string]: Shape;
}

/** Exactly these keys, the optional ones there or not. */
export function object(required: Keys, optional: Keys = {}): Shape {
  return (value) => {
    if (!isFields(value)) return " must be an object";
    const strange = Object.keys(value).find(
      (key) => !Object.hasOwn(required, key) && !Object.hasOwn(optional, key),
    );
    return strange === undefined ? keysOf(value, required, optional) : `.${strange} is not known`;
  };
}

/** At least these keys; others are JSON. For what may come from another release. */
export function open(required: Keys): Shape {
  return (value) =>
    isFields(value) ? (keysOf(value, required, {}) ?? json(value)) : " must be an object";
}

export function either(...shapes: readonly Shape[]): Shape {
  return (value) => {
    const problems = shapes.map((shape) => shape(value));
    return problems.includes(undefined) ? undefined : problems.at(-1);
  };
}

function keysOf(
  value: { readonly [key: string]: unknown },
  required: Keys,
  optional: Keys,
): string | undefined {
  const missing = Object.keys(required).find((key) => !Object.hasOwn(value, key));
  if (missing !== undefined) return `.${missing} is missing`;
  return firstProblem(
    Object.entries({ ...required, ...optional }).flatMap(([key, shape]) =>
      Object.hasOwn(value, key) ? [[`.${key}`, value[key], shape] as const] : [],
    ),
  );
}

function firstProblem(
  parts: readonly (readonly [path: string, value: unknown, shape: Shape])[],
): string | undefined {
  for (const [path, value, shape] of parts) {
    const problem = shape(value);
    if (problem !== undefined) return path + problem;
  }
  return undefined;
}
