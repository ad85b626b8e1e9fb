/** Deeper nesting is refused: native JSON and the callers here recurse. */
export const maxDepth = 1_000;

export interface LosslessOptions {
  /** Keys whose value is undefined count as absent instead of as a flaw. */
  readonly omitUndefined?: boolean;
}

/**
 * Where and why `value` would not survive JSON, e.g. `$.todos[2].at is a Date`; undefined when it would, key for key
 * (spec/harness §1). Refused: undefined, NaN, Infinity, -0, bigint, function, symbol, cycles, holes and extra keys in arrays,
 * instances of classes, symbol and non-enumerable keys, nesting deeper than 1,000. Strings are not looked into.
 */
export function checkLossless(value: unknown, options: LosslessOptions = {}): string | undefined {
  const flaw = findFlaw(value, [], options.omitUndefined === true);
  return flaw === undefined ? undefined : `$${flaw}`;
}

/** A detached, deeply frozen copy of a value that `checkLossless` accepts; of anything else it throws TypeError (a bug). */
export function deepFreezeCopy<T>(value: T): T;
export function deepFreezeCopy(value: unknown): unknown {
  return copy(value, value, 0);
}

/** An object literal or JSON object, of any realm: workflow code runs in a context of its own. */
function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return (
    typeof prototype === "object" &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, "isPrototypeOf")
  );
}

/** Returns the path below `value` followed by the reason, so that paths cost nothing while all is well. */
function findFlaw(value: unknown, ancestors: object[], omitUndefined: boolean): string | undefined {
  if (typeof value !== "object" || value === null) return scalarFlaw(value);
  const flaw = containerFlaw(value);
  if (flaw !== undefined) return flaw;
  if (ancestors.includes(value)) return " is a cycle";
  if (ancestors.length >= maxDepth) return ` is nested deeper than ${maxDepth}`;
  ancestors.push(value);
  const inner = Array.isArray(value)
    ? flawOfItems(value, ancestors, omitUndefined)
    : flawOfKeys(value, ancestors, omitUndefined);
  ancestors.pop();
  return inner;
}

function flawOfItems(
  items: readonly unknown[],
  ancestors: object[],
  omitUndefined: boolean,
): string | undefined {
  for (let index = 0; index < items.length; index += 1) {
    const flaw = findFlaw(items[index], ancestors, omitUndefined);
    if (flaw !== undefined) return `[${index}]${index in items ? flaw : " is a hole"}`;
  }
  return undefined;
}

function flawOfKeys(
  value: object,
  ancestors: object[],
  omitUndefined: boolean,
): string | undefined {
  for (const [key, inner] of Object.entries(value)) {
    if (omitUndefined && inner === undefined) continue;
    const flaw = findFlaw(inner, ancestors, omitUndefined);
    if (flaw !== undefined) return `${step(key)}${flaw}`;
  }
  return undefined;
}

function step(key: string): string {
  return /^[A-Za-z_$][\w$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

export function scalarFlaw(value: unknown): string | undefined {
  switch (typeof value) {
    case "number":
      if (Object.is(value, -0)) return " is -0";
      return Number.isFinite(value) ? undefined : ` is ${value}`;
    case "string":
    case "boolean":
    case "object":
      return undefined;
    case "undefined":
      return " is undefined";
    case "bigint":
    case "function":
    case "symbol":
      return ` is a ${typeof value}`;
  }
}

export function containerFlaw(value: object): string | undefined {
  if (Array.isArray(value)) {
    // Array.prototype is itself an array, in every realm; the prototype of a subclass is not.
    if (!Array.isArray(Object.getPrototypeOf(value))) return ` is ${className(value)}`;
    return Reflect.ownKeys(value).length > value.length + 1
      ? " is an array with extra keys"
      : undefined;
  }
  if (!isPlainObject(value)) return ` is ${className(value)}`;
  return Reflect.ownKeys(value).length === Object.keys(value).length
    ? undefined
    : " has symbol or non-enumerable keys";
}

function className(value: object): string {
  const made: unknown = value.constructor;
  if (typeof made !== "function" || made.name === "") return "an instance of a class";
  return made === Object ? "an object that inherits" : `a ${made.name}`;
}

function copy(value: unknown, root: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null) {
    if (scalarFlaw(value) !== undefined) throw notLossless(root);
    return value;
  }
  if (depth >= maxDepth || containerFlaw(value) !== undefined) throw notLossless(root);
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    return Object.freeze(Array.from(items, (item) => copy(item, root, depth + 1)));
  }
  const result: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    const copied = copy(inner, root, depth + 1);
    // Assigning to this one key would set the prototype.
    if (key === "__proto__")
      Object.defineProperty(result, key, { value: copied, enumerable: true });
    else result[key] = copied;
  }
  return Object.freeze(result);
}

/** The error for a root that has a flaw, with its path. */
export function notLossless(root: unknown, options: LosslessOptions = {}): TypeError {
  return new TypeError(
    `not lossless JSON: ${checkLossless(root, options) ?? "it changed while it was read"}`,
  );
}
