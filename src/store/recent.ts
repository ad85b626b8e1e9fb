/** Values by key, those used last kept as far as their sizes together stay within a bound. */
export interface Recent<T> {
  /** Loads what is not kept; at once for all that ask for it meanwhile. */
  get(key: string, load: () => Promise<Sized<T>>): Promise<T>;
  /** One that is larger than the bound alone is not kept. */
  put(key: string, sized: Sized<T>): void;
  /** Drops all whose key begins so. */
  drop(prefix: string): void;
}

export interface Sized<T> {
  readonly value: T;
  readonly size: number;
}

export function createRecent<T>(bound: number): Recent<T> {
  // In the order of use, the oldest first.
  const kept = new Map<string, Sized<T>>();
  const loading = new Map<string, Promise<Sized<T>>>();
  let total = 0;
  function forget(key: string): void {
    total -= kept.get(key)?.size ?? 0;
    kept.delete(key);
  }
  function put(key: string, sized: Sized<T>): void {
    forget(key);
    if (sized.size > bound) return;
    kept.set(key, sized);
    total += sized.size;
    for (const oldest of kept.keys()) {
      if (total <= bound) return;
      forget(oldest);
    }
  }
  return {
    put,
    async get(key, load) {
      const found = kept.get(key);
      if (found !== undefined) {
        put(key, found);
        return found.value;
      }
      const running = loading.get(key) ?? load();
      loading.set(key, running);
      try {
        const loaded = await running;
        if (loading.get(key) === running) put(key, loaded);
        return loaded.value;
      } finally {
        if (loading.get(key) === running) loading.delete(key);
      }
    },
    drop(prefix) {
      for (const key of kept.keys()) if (key.startsWith(prefix)) forget(key);
      for (const key of loading.keys()) if (key.startsWith(prefix)) loading.delete(key);
    },
  };
}
