/** Tasks of one key run one after the other, in the order given; other keys run beside them. */
export interface SerialTasks {
  run<T>(key: string, task: () => Promise<T>): Promise<T>;
  /** Resolves when what is running or waiting now under keys with this prefix has ended. */
  settled(keyPrefix: string): Promise<void>;
}

export function createSerialTasks(): SerialTasks {
  const tails = new Map<string, Promise<unknown>>();
  return {
    run(key, task) {
      const result = (tails.get(key) ?? Promise.resolve()).then(task);
      const tail = result.then(
        () => forget(),
        () => forget(),
      );
      tails.set(key, tail);
      return result;

      function forget(): void {
        if (tails.get(key) === tail) tails.delete(key);
      }
    },
    async settled(keyPrefix) {
      await Promise.all(
        [...tails].filter(([key]) => key.startsWith(keyPrefix)).map(([, tail]) => tail),
      );
    },
  };
}
