import { setTimeout as delay } from "node:timers/promises";
import type { Connection } from "@temporalio/client";
import { reasonOf } from "./cluster.js";
import type { Report } from "./environment.js";

export type AttributeType =
  | "Keyword"
  | "KeywordList"
  | "Text"
  | "Int"
  | "Double"
  | "Bool"
  | "Datetime";

/** Search attributes by name. */
export type AttributeTypes = Readonly<Record<string, AttributeType>>;

/** The names of the custom search attributes that the namespace has. */
export async function attributesRegistered(
  connection: Connection,
  namespace: string,
): Promise<Set<string>> {
  return new Set((await list(connection, namespace)).keys());
}

/**
 * Registers what is missing and returns the names that can be used now. Where listing or registering is not
 * allowed, or a name is taken by another type, that is reported and Longhaul runs without it (design D13).
 */
export async function registerAttributes(
  connection: Connection,
  namespace: string,
  wanted: AttributeTypes,
  report: Report = () => {},
): Promise<Set<string>> {
  let present: Map<string, number>;
  try {
    present = await list(connection, namespace);
  } catch (error) {
    report(
      `search attributes of "${namespace}" cannot be read (${reasonOf(error)}); going on without`,
    );
    return new Set();
  }
  const missing = Object.entries(wanted).filter(([name]) => !present.has(name));
  if (missing.length > 0) {
    const searchAttributes = Object.fromEntries(
      missing.map(([name, type]) => [name, indexedTypes[type]]),
    );
    const names = missing.map(([name]) => name);
    try {
      await connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
      present = await listUntil(connection, namespace, names);
    } catch (error) {
      // Another process may have registered them at the same moment.
      present = await list(connection, namespace).catch(() => present);
      const left = names.filter((name) => !present.has(name));
      if (left.length > 0) {
        report(
          `search attributes ${left.join(", ")} cannot be registered in "${namespace}" (${reasonOf(error)}); going on without them`,
        );
      }
    }
  }
  const usable = new Set<string>();
  for (const [name, type] of Object.entries(wanted)) {
    const actual = present.get(name);
    if (actual === indexedTypes[type]) usable.add(name);
    else if (actual !== undefined) {
      report(
        `search attribute ${name} in "${namespace}" is not of type ${type}; going on without it`,
      );
    }
  }
  return usable;
}

/** The numbers of temporal.api.enums.v1.IndexedValueType. */
const indexedTypes: Record<AttributeType, number> = {
  Text: 1,
  Keyword: 2,
  Int: 3,
  Double: 4,
  Bool: 5,
  Datetime: 6,
  KeywordList: 7,
};

async function list(connection: Connection, namespace: string): Promise<Map<string, number>> {
  const { operatorService } = connection;
  const answer = await connection.withDeadline(Date.now() + 10_000, () =>
    operatorService.listSearchAttributes({ namespace }),
  );
  return new Map(Object.entries(answer.customAttributes));
}

/** A cluster may show a new attribute only after its cache is read anew. */
async function listUntil(
  connection: Connection,
  namespace: string,
  names: readonly string[],
): Promise<Map<string, number>> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const present = await list(connection, namespace);
    if (names.every((name) => present.has(name)) || Date.now() > deadline) return present;
    await delay(100);
  }
}
