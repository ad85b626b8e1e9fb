import { homeOf } from "../../config.js";
import { command, homeOption, jsonOption, type Context } from "../command.js";
import { LonghaulError } from "../../contracts/errors.js";
import { progress } from "../progress.js";

export const serverStartCommand = command({
  name: "server start",
  summary: "Start the embedded Temporal server and keep it up",
  options: { ...jsonOption, ...homeOption },
  async run(context, _words, options) {
    const { startServer } = await import("../../server/index.js");
    const home = homeOf(context.io.env, options, context.io.cwd);
    const status = await context.orStop(
      startServer({ home, env: context.io.env, report: progress(context.io) }),
    );
    return print(context, options.json === true, status);
  },
});

export const serverStopCommand = command({
  name: "server stop",
  summary: "Stop the embedded Temporal server; sessions go on when it is started again",
  options: {
    force: { type: "boolean", help: "stop it though commands or workers use it" },
    ...jsonOption,
    ...homeOption,
  },
  async run(context, _words, options) {
    const { stopServer } = await import("../../server/index.js");
    const home = homeOf(context.io.env, options, context.io.cwd);
    const result = await stopServer({
      home,
      force: options.force === true,
      report: progress(context.io),
    });
    if (!result.stopped) {
      const pids = result.users.map((user) => user.pid).join(", ");
      throw new LonghaulError(
        "USAGE",
        `the server is in use by process ${pids}; end it first, or use --force`,
      );
    }
    context.io.stdout.write(
      options.json === true
        ? `${JSON.stringify(result, undefined, 2)}\n`
        : result.wasRunning
          ? "stopped\n"
          : "it was not running\n",
    );
    return 0;
  },
});

export const serverStatusCommand = command({
  name: "server status",
  summary: "Show the embedded Temporal server of the data directory",
  options: { ...jsonOption, ...homeOption },
  async run(context, _words, options) {
    const { serverStatus } = await import("../../server/index.js");
    return print(
      context,
      options.json === true,
      await serverStatus({ home: homeOf(context.io.env, options, context.io.cwd) }),
    );
  },
});

type Status = Awaited<ReturnType<typeof import("../../server/index.js").serverStatus>>;

function print({ io }: Context, json: boolean, status: Status): number {
  if (json) {
    io.stdout.write(`${JSON.stringify(status, undefined, 2)}\n`);
    return 0;
  }
  const users = status.users.length;
  const lines = status.running
    ? [
        `running at ${status.address ?? "?"}, process ${status.server?.pid ?? "?"}${status.keep ? ", kept up" : ""}`,
        `Temporal UI  ${status.uiUrl ?? "?"}`,
        `used by ${users} process${users === 1 ? "" : "es"}${users === 0 ? "" : `: ${status.users.map((user) => user.pid).join(", ")}`}`,
      ]
    : [status.died ? "not running: it died; the next command starts it again" : "not running"];
  for (const line of [...lines, `database ${status.database}`, `log ${status.log}`])
    io.stdout.write(`${line}\n`);
  return 0;
}
