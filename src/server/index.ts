/** Embedded Temporal: finds or fetches a server, starts it, shares it between processes, stops it (design D14). */
export { acquireServer, embeddedNamespace } from "./acquire.js";
export type { AcquireServer, ServerHandle } from "./acquire.js";
export { attributesRegistered, registerAttributes } from "./attributes.js";
export type { AttributeType, AttributeTypes } from "./attributes.js";
export { clusterFromEnvironment } from "./cluster.js";
export type { Cluster, ClusterConnection } from "./cluster.js";
export { serverStatus, startServer, stopServer } from "./control.js";
export type { ServerStatus, StopResult } from "./control.js";
export type { Environment, Report } from "./environment.js";
export { resolveServer } from "./resolve.js";
export type { ResolvedServer } from "./resolve.js";
