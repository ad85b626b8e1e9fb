import type { ArchivedSession } from "../../contracts/archive.js";
import type { Backend } from "../backend.js";
import type { Context } from "../command.js";
import { oneLine } from "../render/clean.js";
import { tableLines } from "../render/table.js";
import { terminalOf } from "../render/terminal.js";
import { minuteOf } from "./reading.js";

/** `sessions --archived`. What can be read is shown also when a damaged one ends it with an error. */
export async function listArchived(
  context: Context,
  backend: Backend,
  limit: number,
  json: boolean,
): Promise<number> {
  const { io } = context;
  const found: ArchivedSession[] = [];
  let more = false;
  let failure: { readonly cause: unknown } | undefined;
  const reading = (async () => {
    for await (const one of backend.archived()) {
      more = found.length === limit;
      if (more) return;
      found.push(one);
    }
  })();
  try {
    await context.orStop(reading);
  } catch (error) {
    failure = { cause: error };
  }
  if (more) io.stderr.write(`${limit} shown, more with --limit N\n`);
  if (json) io.stdout.write(`${JSON.stringify(found.map(jsonOf), undefined, 2)}\n`);
  else if (found.length > 0) {
    const rows = found.map((one) =>
      [
        one.session,
        endings[one.status],
        minuteOf(one.startedAt),
        minuteOf(one.closedAt),
        String(one.lastSeq + 1),
        one.title ?? "",
      ].map(oneLine),
    );
    const head = ["SESSION", "ENDED", "STARTED", "CLOSED", "ENTRIES", "TITLE"];
    for (const line of tableLines(
      [head, ...rows],
      io.stdout.isTTY === true,
      terminalOf(io.stdout, io.env),
    ))
      io.stdout.write(`${line}\n`);
  } else if (failure === undefined) io.stdout.write("no archived sessions\n");
  if (failure !== undefined) throw failure.cause;
  return 0;
}

const endings: { readonly [S in ArchivedSession["status"]]: string } = {
  completed: "closed",
  failed: "failed",
  terminated: "terminated",
  cancelled: "canceled",
  "timed-out": "timed out",
};

function jsonOf({ session, title, status, startedAt, closedAt, lastSeq }: ArchivedSession): object {
  return {
    id: session,
    ...(title === undefined ? {} : { title }),
    ended: endings[status],
    startedAt,
    closedAt,
    entries: lastSeq + 1,
  };
}
