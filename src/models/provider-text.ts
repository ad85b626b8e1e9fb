/** Longest thing a provider said that is shown to a person, characters. */
const longest = 300;

/** What a provider said as one plain line: markup, control characters and everything over 300 characters dropped. */
export function plainLine(text: string): string {
  const readable = isMarkup(text) ? withoutMarkup(text) : text;
  const line = readable
    .replaceAll(/\p{Cc}\[[0-9;?]*[A-Za-z]/gu, "")
    .replaceAll(/[\s\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  const characters = Array.from(line.slice(0, longest * 2));
  return characters.length > longest ? `${characters.slice(0, longest).join("")}…` : line;
}

/** Does this look like a web page, or like XML? */
export function isMarkup(text: string): boolean {
  return /^\s*<(?:!doctype|html|head|body|\?xml|[a-z][\w-]*[\s>])/i.test(text);
}

/** Replaces every occurrence of a secret, also as it stands in a URL or in JSON. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret.length < 4) continue;
    for (const form of new Set([
      secret,
      encodeURIComponent(secret),
      JSON.stringify(secret).slice(1, -1),
    ]))
      clean = clean.replaceAll(form, "[key]");
  }
  return clean;
}

const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  "#39": "'",
  nbsp: " ",
};

function withoutMarkup(text: string): string {
  return text
    .slice(0, 20_000)
    .replaceAll(/<(?<name>script|style|head)\b[\s\S]*?(?:<\/\k<name>\s*>|$)/gi, (part) => {
      const title = /<title[^>]*>(?<title>[\s\S]*?)<\/title/i.exec(part)?.groups?.["title"];
      return title === undefined ? " " : ` ${title} `;
    })
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/&(?<name>#?\w+);/g, (whole, name: string) => entities[name] ?? whole);
}
