import { LonghaulError } from "../../src/contracts/errors.js";
import type { Store } from "../../src/contracts/store.js";

/** A store that can be read, and refuses what is written. */
export function unwritable(store: Store): { readonly store: Store; refused(): number } {
  let refused = 0;
  return {
    refused: () => refused,
    store: {
      append: () => {
        refused++;
        return Promise.reject(new LonghaulError("STORE_UNAVAILABLE", "the disk is away"));
      },
      read: (...args) => store.read(...args),
      size: (...args) => store.size(...args),
      sync: (...args) => store.sync(...args),
      list: (...args) => store.list(...args),
      sessions: () => store.sessions(),
      remove: (...args) => store.remove(...args),
      locator: (...args) => store.locator(...args),
      check: () => store.check(),
    },
  };
}
