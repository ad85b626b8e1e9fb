import { afterEach } from "vitest";
import type { Model, ModelOutcome, ModelRequest } from "../../src/contracts/model.js";
import type { Store } from "../../src/contracts/store.js";
import { collectReply } from "../../src/models/collect.js";
import { providersFromEnv, type ProvidersSettings } from "../../src/models/providers.js";
import { createModels } from "../../src/models/registry.js";
import { modelRequest } from "./model-request.js";
import { startProtocolServer, type Answer, type ProtocolServer } from "./protocol-server.js";
import { envOf, type Wire } from "./protocol-wires.js";

/** A provider of a wire, asking a server that gives these answers. */
export interface Line {
  readonly server: ProtocolServer;
  readonly model: Model;
  readonly request: ModelRequest;
  /** One call to its end; `changes` to the request. */
  readonly ask: (changes?: Partial<ModelRequest>) => Promise<ModelOutcome>;
}

const servers: ProtocolServer[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

/** Closed at the end of the test. */
export async function openLine(
  wire: Wire,
  answers: Answer | readonly Answer[],
  settings: ProvidersSettings = {},
  store?: Pick<Store, "read">,
): Promise<Line> {
  const server = await startProtocolServer(
    ...(typeof answers === "function" ? [answers] : answers),
  );
  servers.push(server);
  const config = { provider: wire.provider, model: wire.model };
  const { model } = createModels(providersFromEnv(envOf(wire, server.url), settings, store)).find(
    config,
  );
  const request = modelRequest({ config });
  const { signal } = new AbortController();
  return {
    server,
    model,
    request,
    ask: (changes) => collectReply(model.stream({ ...request, ...changes }, signal), signal),
  };
}
