import { Parser } from "htmlparser2";

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

/** Never shown. */
const silent = words("script style noscript template svg canvas iframe object nav button select");
/** Begin and end on lines of their own. */
const blocks = words("div dd dt figcaption li tbody thead tr");
/** Have an empty line before and after. */
const wideBlocks = words(
  "address article aside blockquote body details dl fieldset figure footer header hr main ol p pre section table ul h1 h2 h3 h4 h5 h6",
);

const maxDepth = 256;
const pieceLength = 4_096;

/** A page as text to read: headings as `#`, lists as `-`, cells between `|`, links as `text (address)`; scripts and menus left out. */
export function htmlToText(html: string, base: string): string {
  const page = new Page(base);
  const parser = new Parser(page, { decodeEntities: true });
  // The parser's time grows with the depth of its stack, which is looked at between pieces.
  for (let at = 0; at < html.length && page.depth < maxDepth; at += pieceLength)
    parser.write(html.slice(at, at + pieceLength));
  const tooDeep = page.depth >= maxDepth;
  if (tooDeep) parser.reset();
  else parser.end();
  return `${page.text()}${tooDeep ? "\n[the rest of the page is nested too deeply]" : ""}`.trim();
}

class Page {
  /** Elements open now. */
  depth = 0;
  private readonly base: string;
  private readonly parts: string[] = [];
  private title = "";
  /** Line breaks owed before the next text. */
  private breaks = 0;
  private space = false;
  private hidden = 0;
  private pre = 0;
  private inTitle = false;
  /** The open link; links do not nest. */
  private link: { readonly href: string; readonly at: number } | undefined;

  constructor(base: string) {
    this.base = base;
  }

  text(): string {
    const body = this.parts.join("").trim();
    const title = this.title.replaceAll(/\s+/g, " ").trim();
    return title === "" || body.startsWith(`# ${title}\n`) ? body : `${title}\n\n${body}`.trim();
  }

  onopentag(name: string, attributes: Readonly<Record<string, string>>): void {
    this.depth += 1;
    if (silent.has(name)) this.hidden += 1;
    if (this.hidden > 0) return;
    this.block(name);
    const level = /^h([1-6])$/.exec(name)?.[1];
    if (level !== undefined) this.mark(`${"#".repeat(Number(level))} `);
    else if (name === "li") this.mark("- ");
    else if (name === "br") this.breaks = Math.max(this.breaks, 1);
    else if (name === "td" || name === "th") this.mark(this.breaks > 0 ? "" : " | ");
    else if (name === "img" && (attributes["alt"] ?? "").trim() !== "")
      this.ontext(`[image: ${attributes["alt"]}]`);
    else if (name === "a") this.link = { href: attributes["href"] ?? "", at: this.parts.length };
    else if (name === "title") this.inTitle = this.title === "";
    else if (name === "pre") this.pre += 1;
  }

  onclosetag(name: string): void {
    this.depth -= 1;
    if (silent.has(name)) this.hidden = Math.max(0, this.hidden - 1);
    if (this.hidden > 0) return;
    if (name === "a") this.endLink();
    else if (name === "title") this.inTitle = false;
    else if (name === "pre") this.pre = Math.max(0, this.pre - 1);
    this.block(name);
  }

  ontext(text: string): void {
    if (this.hidden > 0) return;
    if (this.inTitle) {
      this.title += text;
      return;
    }
    if (this.pre > 0) {
      this.put(text);
      return;
    }
    for (const [index, word] of text.split(/[\s\u200B]+/).entries()) {
      if (index > 0) this.space = true;
      if (word !== "") this.put(word);
    }
  }

  private block(name: string): void {
    if (wideBlocks.has(name)) this.breaks = 2;
    else if (blocks.has(name)) this.breaks = Math.max(this.breaks, 1);
  }

  private mark(text: string): void {
    this.space = false;
    if (text !== "") this.put(text);
  }

  private put(text: string): void {
    if (this.breaks > 0) {
      if (this.parts.length > 0) this.parts.push("\n".repeat(this.breaks));
    } else if (this.space && this.parts.length > 0 && !/\s$/.test(this.parts.at(-1) ?? ""))
      this.parts.push(" ");
    this.breaks = 0;
    this.space = false;
    this.parts.push(text);
  }

  private endLink(): void {
    const { link } = this;
    this.link = undefined;
    if (link === undefined || link.at === this.parts.length) return;
    if (link.href.startsWith("#") || !URL.canParse(link.href, this.base)) return;
    const target = new URL(link.href, this.base);
    const shown = this.parts.slice(link.at).join("").trim();
    if (/^https?:$/.test(target.protocol) && shown !== target.href)
      this.parts.push(` (${target.href})`);
  }
}
