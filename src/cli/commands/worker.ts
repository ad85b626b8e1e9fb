import { command, homeOption } from "../command.js";
import { aborted } from "../io.js";
import { usage } from "../parse.js";
import { oneLine } from "../render/clean.js";
import { deploymentOption, workerDeploymentOf } from "./deployment.js";
import { settingsOf, wholeNumber } from "./settings.js";
import { toolsOption, workerParts } from "./worker-parts.js";

const roles = { session: ["session"], host: ["host"], both: ["session", "host"] } as const;

export const workerCommand = command({
  name: "worker",
  summary: "Run a worker until it is stopped",
  options: {
    role: {
      type: "string",
      value: "role",
      help: "session (turns and model calls), host (tools and jobs) or both (default)",
    },
    "host-id": {
      type: "string",
      value: "id",
      help: "this machine's name as a host (default: made once and kept)",
    },
    "max-jobs": {
      type: "string",
      value: "n",
      help: "most background jobs alive on this host at a time (default 500)",
    },
    ...deploymentOption,
    "build-id": {
      type: "string",
      value: "id",
      help: "name of this build in the deployment (default LONGHAUL_BUILD_ID)",
    },
    ...toolsOption,
    ...homeOption,
  },
  details: [
    "It joins the cluster that TEMPORAL_ADDRESS names, else the embedded server of the data directory.",
    "With --deployment and --build-id its session role gets work only from longhaul rollout on.",
  ],
  async run(context, _words, options) {
    const { io } = context;
    const role = options.role ?? "both";
    if (!isRole(role))
      throw usage(
        `--role expected session, host or both, got ${JSON.stringify(role)}`,
        "longhaul worker --help",
      );
    const settings = settingsOf(context, options);
    const maxJobs =
      options["max-jobs"] === undefined
        ? {}
        : { maxJobs: wholeNumber(options["max-jobs"], "--max-jobs", 1) };
    const deployment = workerDeploymentOf(io, options);
    const parts = await workerParts(context, settings, options.tools);
    const report = (line: string) => io.stderr.write(`${oneLine(line)}\n`);
    const backend = await context.backend({ home: settings.home, register: true, report });
    const worker = await context.orStop(
      backend.startWorker({
        ...parts,
        ...maxJobs,
        roles: roles[role],
        ...(deployment === undefined ? {} : { deployment }),
      }),
    );
    const build =
      deployment === undefined || role === "host"
        ? ""
        : `, build ${deployment.buildId} of deployment ${deployment.name}`;
    io.stdout.write(
      `worker ready: role ${role}, host ${settings.hostId}, Temporal ${backend.address}, namespace ${backend.namespace}${build}\n`,
    );
    await Promise.race([worker.done, aborted(io.stop)]);
    return 0;
  },
});

function isRole(text: string): text is keyof typeof roles {
  return Object.hasOwn(roles, text);
}
