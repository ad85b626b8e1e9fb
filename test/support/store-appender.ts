// A child process that appends the byte pattern to a stream, from its length to `until`, and prints the length after
// each append. Arguments: store spec, session, stream, until, bytes per append.
import { patternBytes } from "./byte-pattern.js";
import { openStore } from "./open-store.js";

const [spec = "", session = "", stream = "", until = "0", step = "0"] = process.argv.slice(2);
const store = await openStore(spec);
let length = (await store.size(session, stream)) ?? 0;
while (length < Number(until)) {
  const bytes = patternBytes(length, Math.min(Number(step), Number(until) - length));
  length = await store.append(session, stream, length, bytes);
  process.stdout.write(`${length}\n`);
}
