import { TextDecoder } from "node:util";
import * as z from "zod";

import { defineTool, type ToolDefinition } from "./define.js";
import { htmlToText } from "./html-text.js";
import { defaultRules, fetchPage, type WebAnswer, type WebRules } from "./web-request.js";

export interface WebFetchOptions {
  /** The deployment's word; without it the tool is not offered. */
  readonly allow: boolean;
  /** Hosts that may be asked: `example.com`, or `*.example.com` for names below. Absent: any public host. */
  readonly allowHosts?: readonly string[];
  /** Name to addresses, for tests and for deployments with a resolver of their own. */
  readonly resolve?: WebRules["resolve"];
  /** Which addresses may be connected to. Default public ones; whoever widens it opens that part of their network to models. */
  readonly permits?: WebRules["permits"];
}

const defaultBytes = 1_000_000;
const maxBytesLimit = 5_000_000;

/** The `web_fetch` tool, or nothing when the deployment does not allow it. */
export function webFetch(options: WebFetchOptions): readonly ToolDefinition[] {
  if (!options.allow) return [];
  const rules: WebRules = {
    resolve: options.resolve ?? defaultRules.resolve,
    permits: options.permits ?? defaultRules.permits,
    ...(options.allowHosts === undefined ? {} : { allowHosts: options.allowHosts }),
  };
  return [
    defineTool({
      name: "web_fetch",
      description:
        "Fetch a page or text file from the public web with GET. HTML comes as readable text with its links. Follows up to 5 redirects; private addresses are refused.",
      parameters: z.object({
        url: z.string().min(1).max(4_000).describe("http or https URL without credentials."),
        maxBytes: z
          .int()
          .min(1)
          .max(maxBytesLimit)
          .optional()
          .describe(`Most bytes to read, default ${defaultBytes}.`),
      }),
      parallel: true,
      idempotent: true,
      workspace: false,
      timeoutMs: 30_000,
      async execute({ url, maxBytes = defaultBytes }, { signal }) {
        return render(await fetchPage(url, maxBytes, rules, signal));
      },
    }),
  ];
}

function render(answer: WebAnswer) {
  const { status, statusText, url, bytes, cut } = answer;
  const meta = { status, url, bytes: bytes.length, contentType: answer.contentType };
  const head = `${url} ${status}${statusText === "" ? "" : ` ${statusText}`}`;
  const text = readable(answer);
  const body =
    text === undefined
      ? `[not text: ${answer.contentType || "no content type"}, ${bytes.length} bytes${cut ? " and more" : ""}]`
      : text || "(empty)";
  const note = cut ? `\n[cut after ${bytes.length} bytes; raise maxBytes for more]` : "";
  if (status >= 200 && status < 300) return { text: `[${head}]\n${body}${note}`, meta };
  return {
    text: `Error: ${head}\n${body}${note}`,
    meta,
    error: { code: "TOOL_FAILED" as const },
  };
}

/** Undefined for what is no text. */
function readable({ bytes, contentType, url }: WebAnswer): string | undefined {
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  const kind = type.trim();
  const textual =
    kind === "" || /^text\/|[/+](?:json|xml|yaml|javascript|x-yaml|toml|ndjson)$/.test(kind);
  if (!textual) return undefined;
  const html = kind === "text/html" || kind === "application/xhtml+xml";
  const declared = /charset\s*=\s*["']?([\w:.-]+)/;
  const charset =
    declared.exec(parameters.join(";"))?.[1] ??
    (html ? declared.exec(bytes.toString("latin1", 0, 1_024).toLowerCase())?.[1] : undefined);
  const text = decoderFor(charset).decode(bytes);
  if (text.includes("\0")) return undefined;
  return html ? htmlToText(text, url) : text;
}

function decoderFor(charset = "utf-8"): TextDecoder {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
}
