import { homeOf, type Settings } from "../../config.js";
import type { Context } from "../command.js";
import { settingsOf } from "../commands/settings.js";
import type { Io } from "../io.js";
import { fail, ok, reasonOf, type Check } from "./check.js";
import { lookAtMachine } from "./look-machine.js";
import { callCheck, callModel, modelCheck } from "./model.js";

/** Looks at everything a session needs; what one look finds wrong does not keep the others from being made. */
export async function examine(
  context: Context,
  options: { readonly home?: string; readonly callModel: boolean },
): Promise<readonly Check[]> {
  const { io } = context;
  const { home: given, callModel: calling } = options;
  const home = homeOf(io.env, { home: given }, io.cwd);
  const { settings, check } = readSettings(context, home);
  const checks: Check[] = [check, ...(await lookAtMachine(home))];
  if (settings !== undefined) {
    const model = await modelCheck(io, settings);
    checks.push(model);
    if (calling) checks.push(await tryModel(io, settings, model));
  }
  const { lookAtTemporal } = await import("./look-temporal.js");
  return [...checks, ...(await lookAtTemporal(io, home, settings?.hostId))];
}

async function tryModel(io: Io, settings: Settings, known: Check): Promise<Check> {
  const { model } = settings;
  if (model === undefined || known.status === "fail")
    return fail("Model call", "not made", "configure the model first, see above");
  return callCheck(model, await callModel(io, settings, model));
}

function readSettings(
  context: Context,
  home: string,
): { readonly settings?: Settings; readonly check: Check } {
  const name = "Settings";
  try {
    const settings = settingsOf(context, { home });
    return { settings, check: ok(name, `${settings.configFile}, host ${settings.hostId}`) };
  } catch (error) {
    return {
      check: fail(name, reasonOf(error), "correct it as it says; what depends on it was left out"),
    };
  }
}
