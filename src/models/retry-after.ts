export type Headers = Readonly<Record<string, string | undefined>>;

/**
 * How long the provider asked to wait, ms: `retry-after-ms`, or `retry-after` in seconds or as a date. A date is read
 * against the answer's own `date`, so a clock that is off does not matter.
 */
export function retryAfterOf(headers: Headers, now: number): number | undefined {
  const milliseconds = numberIn(headers["retry-after-ms"]);
  if (milliseconds !== undefined) return Math.round(milliseconds);
  const text = headers["retry-after"]?.trim();
  if (text === undefined || text === "") return undefined;
  const seconds = numberIn(text);
  if (seconds !== undefined) return Math.round(seconds * 1000);
  const at = Date.parse(text);
  if (Number.isNaN(at)) return undefined;
  const sent = Date.parse(headers["date"] ?? "");
  return Math.max(0, at - (Number.isNaN(sent) ? now : sent));
}

/** The wait named in words, as in "Please try again in 1m20.5s", ms. */
export function retryAfterInWords(message: string): number | undefined {
  const wait =
    /\b(?:try again|retry) (?:in|after) (?<wait>(?:[\d.]+ ?(?:ms|s|m|h|seconds?|minutes?)[ ,]*)+)/i.exec(
      message,
    )?.groups?.["wait"];
  if (wait === undefined) return undefined;
  let total = 0;
  for (const { groups } of wait.matchAll(/(?<count>[\d.]+) ?(?<unit>ms|s|m|h)/gi))
    total += Number(groups?.["count"]) * (units[(groups?.["unit"] ?? "s").toLowerCase()] ?? 0);
  return Number.isFinite(total) && total > 0 ? Math.round(total) : undefined;
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+(?:\.\d+)?$/.test(text.trim()) ? Number(text) : undefined;
}
