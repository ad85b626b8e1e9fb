/** One task at a time per key, in the order they came; other keys run beside it. A failed task does not stop the next. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<unknown>>();

  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const result = before.then(task);
    const settled = () => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    };
    const tail: Promise<void> = result.then(settled, settled);
    this.#tails.set(key, tail);
    return result;
  }

  /** Keys with a task under way. */
  get size(): number {
    return this.#tails.size;
  }
}
