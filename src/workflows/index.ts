import { setWorkflowOptions, workflowInfo } from "@temporalio/workflow";
import { builtinPolicy } from "../domain/policy.js";
import { createSession } from "./session.js";

export const session = createSession(builtinPolicy);

// A session stays with the build it began with until it rolls over. On an unversioned worker a behaviour would fail each task.
setWorkflowOptions(
  () =>
    (workflowInfo().currentDeploymentVersion?.deploymentName ?? "") === ""
      ? {}
      : { versioningBehavior: "PINNED" },
  session,
);

export { job } from "./job.js";
