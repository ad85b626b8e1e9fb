import type { ProviderKind } from "./provider-kinds.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A setting and where it is set, or is to be set. */
export interface Found {
  readonly value?: string;
  readonly from: string;
}

/** A provider's key, without the line end a file may have left on it. */
export function keyOf({ keyVariable }: ProviderKind, env: Environment): Found {
  const value = env[keyVariable]?.trim();
  return { from: keyVariable, ...(value !== undefined && value !== "" && { value }) };
}

/** A provider's base URL: its variable, else the setting, else the provider's own address. */
export function baseUrlOf(
  provider: string,
  kind: ProviderKind,
  env: Environment,
  setting: string | undefined,
): Found {
  const variable = env[kind.baseUrlVariable]?.trim();
  if (variable !== undefined && variable !== "")
    return { value: variable, from: kind.baseUrlVariable };
  if (setting !== undefined) return { value: setting, from: `providers.${provider}.baseUrl` };
  return {
    from: kind.baseUrlVariable,
    ...(kind.baseUrl !== undefined && { value: kind.baseUrl }),
  };
}

export function keyProblem(
  provider: string,
  { keyOptional = false }: ProviderKind,
  { value, from }: Found,
): string | undefined {
  if (value === undefined)
    return keyOptional
      ? undefined
      : `${provider} needs a key: set ${from} in the environment of the worker`;
  // It goes into an HTTP header; anything else is a slip of the paste, and would be echoed by the client's complaint.
  return /^[\u0021-\u007E]+$/.test(value)
    ? undefined
    : `${from} is no key: expected printable characters without spaces`;
}

export function baseUrlProblem({ value, from }: Found): string | undefined {
  if (value === undefined)
    return `${from} is not set: expected the base URL of the server, like http://127.0.0.1:8000/v1`;
  let url: URL;
  try {
    url = new URL(value);
  } catch {
    return `${from} expected a URL like https://host/v1, got ${JSON.stringify(value)}`;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return `${from} expected a URL that begins with https:// or http://, got ${JSON.stringify(value)}`;
  if (url.username !== "" || url.password !== "")
    return `${from} expected a URL without user and password; the key has a variable of its own`;
  if (url.search !== "" || url.hash !== "")
    return `${from} expected a URL that ends with its path, got one with ${url.search === "" ? "#" : "?"}`;
  return undefined;
}
