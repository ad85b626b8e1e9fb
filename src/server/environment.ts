import { homedir } from "node:os";
import { join } from "node:path";

/** The environment as a value, so that callers and tests decide what is read. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Receives one finished line of progress, without a newline. */
export type Report = (line: string) => void;

/** A variable's value, where empty counts as not set. */
export function setting(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === undefined || value.trim() === "" ? undefined : value;
}

/** The user's cache directory for Longhaul on this operating system. */
export function cacheDirectory(env: Environment, platform: string = process.platform): string {
  const home = setting(env, "HOME") ?? setting(env, "USERPROFILE") ?? homedir();
  if (platform === "win32") {
    return join(setting(env, "LOCALAPPDATA") ?? join(home, "AppData", "Local"), "longhaul");
  }
  if (platform === "darwin") return join(home, "Library", "Caches", "longhaul");
  return join(setting(env, "XDG_CACHE_HOME") ?? join(home, ".cache"), "longhaul");
}

/**
 * The environment for a program that Longhaul starts: no Temporal client settings, which the server's
 * own command line would read, and no secrets, which stay in worker processes (design D15).
 */
export function environmentForPrograms(env: Environment): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !withheld.test(name)) passed[name] = value;
  }
  return passed;
}

const withheld = /^TEMPORAL_|KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i;
