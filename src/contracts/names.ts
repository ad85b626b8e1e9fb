/** Wire names, all of them (design §2). A test lists them: changing one breaks running sessions. */
export const workflowTypes = { session: "session", job: "job" } as const;

export const queues = {
  sessions: "longhaul",
  hosts: "longhaul.hosts",
} as const;

/** A host's own queues (design §1): foreground tools and control. */
export function hostQueue(hostId: string): string {
  return `longhaul.host.${hostId}`;
}

export function hostControlQueue(hostId: string): string {
  return `longhaul.host.${hostId}.control`;
}

/** Where the host's jobs are followed, with slots of their own. */
export function hostJobsQueue(hostId: string): string {
  return `longhaul.host.${hostId}.jobs`;
}

/** Id of a job's workflow (spec/jobs J2). */
export function jobWorkflowId(session: string, jobId: string, nonce: string): string {
  return `${session}/job/${jobId}/${nonce}`;
}

/** Updates, each with a signal of the same name (design §2). */
export const commands = {
  send: "session.send",
  interrupt: "session.interrupt",
  cancel: "session.cancel",
  close: "session.close",
  configure: "session.configure",
  todoWrite: "todo.write",
  suspend: "session.suspend",
  resume: "session.resume",
  rebind: "session.rebind",
  scheduleChange: "schedule.change",
  jobStart: "job.start",
  jobKill: "job.kill",
  compact: "session.compact",
} as const;

/** Signals without an update: a job tells its session, a job's follower its workflow; and a session is to go on in a new run. */
export const signals = {
  jobReport: "job.report",
  jobProgress: "job.progress",
  rollOver: "session.rollOver",
} as const;

export const queries = {
  view: "session.view",
  log: "session.log",
  messages: "session.messages",
  surface: "session.surface",
  projections: "projections",
  jobs: "session.jobs",
  reminders: "session.reminders",
  bodies: "session.bodies",
} as const;

/** How a query fails that came between two workflow tasks; asked again it is answered. */
export const askAgain = "the session was about to move on; ask again";

export const activityTypes = {
  callModel: "callModel",
  sharedTools: "tools.shared",
  hostTools: "host.tools",
  presentHost: "host.present",
  resolveZone: "zone.resolve",
  readTime: "time.reading",
  runTool: "tool.run",
  sealTool: "tool.seal",
  startJob: "job.begin",
  followJob: "job.follow",
  endJob: "job.end",
  readJob: "job.read",
  lookJobs: "job.look",
  archiveLog: "log.archive",
  fetchBodies: "log.bodies",
} as const;

/** Search attributes and their types; registered at start-up when missing (design D13). */
export const searchAttributes = {
  LonghaulState: "Keyword",
  LonghaulParent: "Keyword",
  LonghaulHost: "Keyword",
  LonghaulOpenJobs: "Int",
  LonghaulNextReminder: "Datetime",
} as const;

export type SearchAttributeName = keyof typeof searchAttributes;

export const sessionStates = [
  "idle",
  "running",
  "awaiting-approval",
  "suspended",
  "cold",
  "faulted",
  "closed",
] as const;

export type SessionStateName = (typeof sessionStates)[number];
