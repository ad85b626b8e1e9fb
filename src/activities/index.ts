import type { Client } from "@temporalio/client";
import type {
  ArchiveActivities,
  HostActivities,
  ZoneActivities,
  SessionActivities,
} from "../contracts/activities.js";
import { openArchive } from "../store/archive.js";
import type { Archive } from "../contracts/archive.js";
import type { Store } from "../contracts/store.js";
import type { Models } from "../models/registry.js";
import type { ToolRegistry } from "../tools/registry.js";
import { createArchiveActivities } from "./archive-log.js";
import { createCallModel } from "./call-model.js";
import type { JobHost } from "../kinds/job-host.js";
import { createBeginJob, createEndJob, createFollowJob } from "./follow-job.js";
import { createLookJobs, createReadJob } from "./read-job.js";
import { createRunTool, createSealTool } from "./run-tool.js";
import { createSessionSource } from "./session-source.js";
import { SurfaceReader } from "./surface-reader.js";
import { timeReading } from "../time/reading.js";
import { resolveLocalTime } from "../time/resolve-zone.js";
import { createHostTools, createSharedTools } from "./tables.js";

export interface ActivityDeps {
  readonly client: Client;
  readonly models: Models;
  readonly tools: ToolRegistry;
  readonly store: Store;
  /** Data directory of this machine. */
  readonly home: string;
  readonly host: string;
}

export interface HostActivityDeps extends Omit<ActivityDeps, "models"> {
  readonly jobs: JobHost;
  /** Aborts when the worker begins to stop. */
  readonly stopping: AbortSignal;
  readonly shutdownGraceMs: number;
  /** How often a follower asks whether the job's owner still is, ms (spec/jobs J22). */
  readonly ownerCheckMs: number;
}

/** On the queue `longhaul`: the activities, and where the workflows of the process tell what they know. */
export function createSessionSide(deps: ActivityDeps): {
  readonly activities: SessionActivities & ArchiveActivities & ZoneActivities;
  readonly offerSurface: SurfaceReader["offer"];
  readonly archive: Archive;
} {
  const source = createSessionSource(deps.client);
  const archive = openArchive(deps.store);
  const reader = new SurfaceReader(source, archive);
  return {
    archive,
    offerSurface: (ref, from, nodes) => reader.offer(ref, from, nodes),
    activities: {
      callModel: createCallModel({ ...deps, reader }),
      "tools.shared": createSharedTools(deps.tools, deps.models),
      "tool.run": createRunTool({ ...deps, source }),
      ...createArchiveActivities({ source, archive }),
      "job.read": createReadJob(deps.store, archive),
      "job.look": createLookJobs(deps.client),
      "zone.resolve": async (local) => resolveLocalTime(local),
      "time.reading": async (input) => timeReading(input),
    },
  };
}

/** On the host's own queues; `host.tools` alone also on `longhaul.hosts`. */
export function createHostActivities(deps: HostActivityDeps): HostActivities {
  return {
    "host.tools": createHostTools(deps.tools, deps.jobs.kinds, deps.host),
    "host.present": async () => ({ host: deps.host }),
    "tool.run": createRunTool({ ...deps, source: createSessionSource(deps.client) }),
    "tool.seal": createSealTool(deps),
    "job.begin": createBeginJob(deps),
    "job.follow": createFollowJob(deps),
    "job.end": createEndJob(deps),
  };
}
