/** Resolves after `ms`, or at once when a signal aborts; leaves no timer and no listener behind. */
export function pause(ms: number, ...signals: readonly (AbortSignal | undefined)[]): Promise<void> {
  if (signals.some((signal) => signal?.aborted === true)) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      for (const signal of signals) signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    for (const signal of signals) signal?.addEventListener("abort", finish, { once: true });
  });
}
