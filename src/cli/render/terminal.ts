import stringWidth from "string-width";

/** What the output can show. */
export interface Terminal {
  /** Colours and other attributes. */
  readonly color: boolean;
  readonly unicode: boolean;
  /** Columns; 80 when the output is no terminal. */
  readonly columns: number;
  /** Lines may be rewritten: a running tool is shown until its card takes its place. */
  readonly live: boolean;
  /** It has a width that a line may not pass; else a program may read the lines. */
  readonly wrap?: boolean;
}

export interface OutputShape {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Colours only on a terminal without NO_COLOR; plain ASCII with NO_COLOR, on a dumb terminal and outside UTF-8. */
export function terminalOf(
  output: OutputShape,
  env: Readonly<Record<string, string | undefined>>,
): Terminal {
  const noColor = (env["NO_COLOR"] ?? "") !== "";
  const dumb = env["TERM"] === "dumb";
  const tty = output.isTTY === true;
  return {
    color: tty && !noColor && !dumb,
    unicode: !noColor && !dumb && isUtf8(env),
    columns: tty && output.columns !== undefined && output.columns >= 20 ? output.columns : 80,
    live: tty && !dumb,
    wrap: tty,
  };
}

function isUtf8(env: Readonly<Record<string, string | undefined>>): boolean {
  const locale = [env["LC_ALL"], env["LC_CTYPE"], env["LANG"]].find(
    (one) => one !== undefined && one !== "",
  );
  return locale !== undefined && /utf-?8/i.test(locale);
}

export interface Glyphs {
  readonly call: string;
  readonly running: string;
  readonly arrow: string;
  readonly ellipsis: string;
  readonly fault: string;
  readonly pending: string;
  readonly inProgress: string;
  readonly completed: string;
}

export function glyphsOf(terminal: Terminal): Glyphs {
  return terminal.unicode ? unicodeGlyphs : asciiGlyphs;
}

const unicodeGlyphs: Glyphs = {
  call: "●",
  running: "○",
  arrow: "→",
  ellipsis: "…",
  fault: "✗",
  pending: "☐",
  inProgress: "▸",
  completed: "☑",
};

const asciiGlyphs: Glyphs = {
  call: "*",
  running: "o",
  arrow: "->",
  ellipsis: "...",
  fault: "x",
  pending: "[ ]",
  inProgress: "[>]",
  completed: "[x]",
};

export type Style = "dim" | "bold" | "red" | "green" | "yellow" | "cyan";

const codes: Readonly<Record<Style, readonly [number, number]>> = {
  dim: [2, 22],
  bold: [1, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

export function styled(terminal: Terminal, style: Style, text: string): string {
  if (!terminal.color || text === "") return text;
  const [on, off] = codes[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}

/** Columns a clean text takes; wide characters count two. */
export function widthOf(text: string): number {
  return stringWidth(text);
}

/** The text, cut at a whole character so that it takes at most `columns`. */
export function fit(text: string, columns: number, ellipsis: string): string {
  const room = columns - widthOf(ellipsis);
  let taken = "";
  let width = 0;
  let cut: string | undefined;
  for (const { segment } of graphemes.segment(text)) {
    const next = width + widthOf(segment);
    if (cut === undefined && next > room) cut = taken;
    if (next > columns) return room < 0 ? "" : (cut ?? taken) + ellipsis;
    taken += segment;
    width = next;
  }
  return taken;
}

/** The text filled up with spaces to `columns`. */
export function pad(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)));
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
