import type { Command } from "../command.js";
import { chatCommand } from "./chat.js";
import { compactCommand } from "./compact.js";
import { doctorCommand } from "./doctor.js";
import { cancelCommand, closeCommand, interruptCommand } from "./end.js";
import { exportCommand } from "./export.js";
import { forkCommand } from "./fork.js";
import { importCommand } from "./import.js";
import { jobsKillCommand, jobsStartCommand, jobsWaitCommand } from "./jobs-act.js";
import { jobsLogsCommand } from "./jobs-logs.js";
import { jobsCommand } from "./jobs.js";
import { hostsCommand } from "./hosts.js";
import { logCommand } from "./log.js";
import { rebindCommand, resumeCommand, suspendCommand } from "./place.js";
import { remindAddCommand, remindDeleteCommand, remindListCommand } from "./remind.js";
import { purgeCommand } from "./purge.js";
import { rolloutCommand } from "./rollout.js";
import { runCommand } from "./run.js";
import { sendCommand } from "./send.js";
import { serverStartCommand, serverStatusCommand, serverStopCommand } from "./server.js";
import { sessionsCommand } from "./sessions.js";
import { showCommand } from "./show.js";
import { startCommand } from "./start.js";
import { todoCommand } from "./todo.js";
import { verifyCommand } from "./verify.js";
import { versionCommand } from "./version.js";
import { workerCommand } from "./worker.js";

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [
  startCommand,
  chatCommand,
  runCommand,
  workerCommand,
  sessionsCommand,
  showCommand,
  logCommand,
  sendCommand,
  todoCommand,
  jobsCommand,
  jobsStartCommand,
  jobsLogsCommand,
  jobsWaitCommand,
  jobsKillCommand,
  remindAddCommand,
  remindListCommand,
  remindDeleteCommand,
  interruptCommand,
  cancelCommand,
  compactCommand,
  suspendCommand,
  resumeCommand,
  rebindCommand,
  closeCommand,
  forkCommand,
  exportCommand,
  importCommand,
  verifyCommand,
  purgeCommand,
  hostsCommand,
  rolloutCommand,
  serverStartCommand,
  serverStopCommand,
  serverStatusCommand,
  doctorCommand,
  versionCommand,
];
