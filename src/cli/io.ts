/** What the command line touches outside itself, so that tests can stand in for it. */
export interface Io {
  readonly stdin: AsyncIterable<Buffer | string>;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Aborted by SIGINT, SIGTERM, or a reader of the output that went away; its reason is a `Stop`. */
  readonly stop: AbortSignal;
}

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Why the command is to end, and the exit code when that cuts its work short. */
export interface Stop {
  readonly why: "SIGINT" | "SIGTERM" | "EPIPE";
  readonly exitCode: number;
}

export const stops: Readonly<Record<Stop["why"], Stop>> = {
  SIGINT: { why: "SIGINT", exitCode: 130 },
  SIGTERM: { why: "SIGTERM", exitCode: 143 },
  EPIPE: { why: "EPIPE", exitCode: 0 },
};

export function stopOf(signal: AbortSignal): Stop {
  const reason: unknown = signal.reason;
  return Object.values(stops).find((stop) => stop === reason) ?? stops.SIGINT;
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
}
