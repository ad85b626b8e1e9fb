/** One line of `longhaul doctor`. `fail`: Longhaul cannot work like this; `warn`: it can, with something missing. */
export interface Check {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  /** What was found, one line. */
  readonly found: string;
  /** What to do about it, one line; absent when the line is ok. */
  readonly cure?: string;
}

export function ok(name: string, found: string): Check {
  return { name, status: "ok", found };
}

export function warn(name: string, found: string, cure: string): Check {
  return { name, status: "warn", found, cure };
}

export function fail(name: string, found: string, cure: string): Check {
  return { name, status: "fail", found, cure };
}

/** The first line of what went wrong. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split("\n", 1)[0]?.trim() ?? "";
}
