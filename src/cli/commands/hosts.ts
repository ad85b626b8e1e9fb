import { command, homeOption, jsonOption } from "../command.js";
import { oneLine } from "../render/clean.js";
import { tableLines } from "../render/table.js";
import { terminalOf } from "../render/terminal.js";
import { secondOf } from "./reading.js";
import { settingsOf } from "./settings.js";

export const hostsCommand = command({
  name: "hosts",
  summary: "List the hosts of open sessions, and whether their workers ask for work",
  options: { ...jsonOption, ...homeOption },
  details: [
    "This machine is listed too. A worker that was killed counts as polling for a minute more; Temporal forgets when it",
    "was last seen after about five minutes.",
  ],
  async run(context, _words, options) {
    const { io } = context;
    const { home, hostId } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const hosts = await context.orStop(backend.hosts([hostId]));
    const listed = hosts.map((host) => ({ ...host, here: host.id === hostId }));
    if (options.json === true) {
      io.stdout.write(`${JSON.stringify(listed, undefined, 2)}\n`);
      return 0;
    }
    const head = ["HOST", "POLLING", "LAST SEEN", "SESSIONS", "WORKERS"];
    const rows = listed.map(({ id, here, polling, lastSeen, sessions, workers }) =>
      [
        here ? `${id} (here)` : id,
        polling ? "yes" : "no",
        lastSeen === undefined ? "-" : secondOf(lastSeen),
        `${sessions}`,
        workers.length === 0 ? "-" : workers.join(", "),
      ].map(oneLine),
    );
    for (const line of tableLines(
      [head, ...rows],
      io.stdout.isTTY === true,
      terminalOf(io.stdout, io.env),
    ))
      io.stdout.write(`${line}\n`);
    return 0;
  },
});
