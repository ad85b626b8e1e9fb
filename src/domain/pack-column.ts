/**
 * Texts for columns of like values: JSON that repeats itself costs little (design D8). Each is lossless, and undefined where it does
 * not fit the values; reading one is total, and undefined when it is damaged.
 */

/** Longer lists are left as they are, so that no few bytes can stand for a list without end. */
export const maxRows = 100_000;

/** Distances between neighbours, base 36; `d*n`: the same one n times. */
export function packInts(values: readonly unknown[]): string | undefined {
  const runs: { readonly distance: number; times: number }[] = [];
  let last = 0;
  for (const value of values) {
    if (!Number.isSafeInteger(value)) return undefined;
    const distance = (value as number) - last;
    if (!Number.isSafeInteger(distance)) return undefined;
    last = value as number;
    const run = runs.at(-1);
    if (run?.distance === distance) run.times += 1;
    else runs.push({ distance, times: 1 });
  }
  return runs
    .map(({ distance, times }) => distance.toString(36) + (times > 1 ? `*${times}` : ""))
    .join(" ");
}

export function unpackInts(packed: unknown): readonly number[] | undefined {
  if (typeof packed !== "string") return undefined;
  const values: number[] = [];
  let last = 0;
  for (const run of packed.split(" ")) {
    const [, digits = "", times = "1"] =
      /^(-?[0-9a-z]{1,11})(?:\*([1-9]\d{0,5}))?$/u.exec(run) ?? [];
    const distance = Number.parseInt(digits, 36);
    if (digits === "" || values.length + Number(times) > maxRows) return undefined;
    for (let time = 0; time < Number(times); time += 1) values.push((last += distance));
    if (!Number.isSafeInteger(last)) return undefined;
  }
  return values;
}

/** What each text has in common with the one before, one digit of base 36, and its rest. */
export function packTexts(values: readonly unknown[]): readonly [string, string] | undefined {
  const texts = values.filter((value) => typeof value === "string");
  if (texts.length < values.length) return undefined;
  const separator = separators.find((one) => !texts.some((text) => text.includes(one)));
  if (separator === undefined) return undefined;
  let last = "";
  const rests = texts.map((text) => {
    let same = 0;
    while (same < maxSame && same < text.length && text[same] === last[same]) same += 1;
    last = text;
    return same.toString(36) + text.slice(same);
  });
  return [separator, rests.join(separator)];
}

export function unpackTexts(separator: unknown, packed: unknown): readonly string[] | undefined {
  if (typeof separator !== "string" || !separators.includes(separator)) return undefined;
  if (typeof packed !== "string") return undefined;
  const texts: string[] = [];
  for (const one of packed.split(separator)) {
    const last = texts.at(-1) ?? "";
    const same = Number.parseInt(one.charAt(0), 36);
    if (!(same <= last.length)) return undefined;
    texts.push(last.slice(0, same) + one.slice(1));
  }
  return texts;
}

/** Hexadecimal digits of one length, three as two characters; of less than three it would not be known how many there are. */
export function packHex(values: readonly unknown[]): readonly [number, string] | undefined {
  const [first] = values;
  if (typeof first !== "string" || first.length < 3) return undefined;
  const { length } = first;
  for (const value of values)
    if (typeof value !== "string" || value.length !== length || !/^[0-9a-f]+$/u.test(value))
      return undefined;
  const digits = values.join("");
  let packed = "";
  for (let at = 0; at < digits.length; at += 3) {
    const three = Number.parseInt(digits.slice(at, at + 3).padEnd(3, "0"), 16);
    packed += alphabet.charAt(three >> 6) + alphabet.charAt(three & 63);
  }
  return [length, packed];
}

export function unpackHex(length: unknown, packed: unknown): readonly string[] | undefined {
  if (!Number.isSafeInteger(length) || Number(length) < 3) return undefined;
  if (typeof packed !== "string" || packed === "" || packed.length % 2 === 1) return undefined;
  let digits = "";
  for (let at = 0; at < packed.length; at += 2) {
    const [high, low] = [
      alphabet.indexOf(packed.charAt(at)),
      alphabet.indexOf(packed.charAt(at + 1)),
    ];
    if (high === -1 || low === -1) return undefined;
    digits += ((high << 6) | low).toString(16).padStart(3, "0");
  }
  const size = Number(length);
  const rest = digits.length % size;
  // What fills the last three up.
  if (rest > 2 || /[^0]/u.test(digits.slice(digits.length - rest))) return undefined;
  return Array.from({ length: (digits.length - rest) / size }, (_, index) =>
    digits.slice(index * size, (index + 1) * size),
  );
}

/** Characters that JSON writes as they are. */
const separators = [" ", "|", "~", "^", "\u007f"];
const maxSame = 35;
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
