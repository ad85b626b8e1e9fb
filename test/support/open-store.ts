import type { Store } from "../../src/contracts/store.js";
import { openDirectoryStore } from "../../src/store/directory.js";

/** Opens the store that a spec such as `directory:/tmp/x` names, in this process or in a child. */
export async function openStore(spec: string): Promise<Store> {
  const kind = spec.slice(0, spec.indexOf(":"));
  const place = spec.slice(kind.length + 1);
  if (kind === "directory") return openDirectoryStore(place);
  throw new Error(`expected a spec like directory:<path>, got ${spec}`);
}
