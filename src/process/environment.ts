/** What a command is told about where it runs; also the marks its processes are found by (design D6). */
export interface CallMarks {
  readonly home: string;
  readonly sessionId: string;
  readonly claim: string;
}

const credentialName =
  /KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|COOKIE|PRIVATE|AUTH(?!OR(?:_|$))|(?:^|_)PASS(?:_|$)|.+_PWD$/i;
const credentialFamily =
  /^(?:AWS|ANTHROPIC|AZURE|DEEPSEEK|GEMINI|GROQ|HF|MISTRAL|OPENAI|OPENROUTER|TEMPORAL|XAI)_/i;

/** The zone this process was started in: one that runs workflows moves itself to UTC (design D16), its commands stay. */
const startedIn = process.env["TZ"];

/**
 * The environment of a command: the worker's own without credentials, in the time zone the worker was started in, with
 * fresh `LONGHAUL_*` facts (spec/harness §8).
 */
export function commandEnvironment(
  base: NodeJS.ProcessEnv,
  marks: CallMarks,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, set] of Object.entries(base)) {
    const value = name === "TZ" ? startedIn : set;
    if (value === undefined || name === "OLDPWD" || name === "NODE_CHANNEL_FD") continue;
    if (/^LONGHAUL_/i.test(name) || credentialName.test(name) || credentialFamily.test(name))
      continue;
    env[name] = value;
  }
  return { ...env, ...markVariables(marks) };
}

/** Control characters cannot stand in every environment, so the marks have none. */
export function markVariables(
  marks: CallMarks,
): Record<"LONGHAUL_HOME" | "LONGHAUL_SESSION_ID" | "LONGHAUL_CALL", string> {
  return {
    LONGHAUL_HOME: plain(marks.home),
    LONGHAUL_SESSION_ID: plain(marks.sessionId),
    LONGHAUL_CALL: plain(marks.claim),
  };
}

function plain(value: string): string {
  return value.replaceAll(/\p{Cc}/gu, "_");
}
