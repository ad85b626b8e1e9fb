/** What the command line touches outside itself, so that tests can stand in for it. */
export interface Io {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reading it throws WORKSPACE when the directory was deleted. */
  readonly cwd: string;
  /** Aborted by SIGINT, SIGTERM, or an output that cannot be written; its reason is a `Stop`. */
  readonly stop: AbortSignal;
  /** Asked when the process is to end at once, until the result is called: names what stays behind. */
  onForcedExit?(remains: () => Promise<string | undefined>): () => void;
  /** Gives what is written to stderr to a function instead, until undefined is given: a chat owns the screen. */
  divertErrors?(sink: ((text: string) => void) | undefined): void;
}

export interface Input extends AsyncIterable<Buffer | string> {
  readonly isTTY?: boolean | undefined;
  /** On a terminal: keys come as they are pressed, and Ctrl-C is one of them. */
  setRawMode?(on: boolean): unknown;
}

export interface Output {
  /** Bytes go out as they are. */
  write(text: string | Uint8Array): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  /** On a terminal: called when its size has changed. */
  on?(event: "resize", listener: () => void): unknown;
  off?(event: "resize", listener: () => void): unknown;
}

/** Why the command is to end (`EPIPE`: a reader went away; `WRITE`: an output failed otherwise), and the exit code when that cuts its work short. */
export interface Stop {
  readonly why: "SIGINT" | "SIGTERM" | "EPIPE" | "WRITE";
  readonly exitCode: number;
}

export const stops: Readonly<Record<Stop["why"], Stop>> = {
  SIGINT: { why: "SIGINT", exitCode: 130 },
  SIGTERM: { why: "SIGTERM", exitCode: 143 },
  EPIPE: { why: "EPIPE", exitCode: 0 },
  WRITE: { why: "WRITE", exitCode: 1 },
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
