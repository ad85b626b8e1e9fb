import { LonghaulError } from "../contracts/errors.js";
import type { CallWatch } from "./call-watch.js";
import { ReportedError } from "./reported.js";

/** What a provider's HTTP client calls instead of the global `fetch`. */
export type Fetch = typeof globalThis.fetch;

/** Longest answer that is read for an explanation, bytes. */
const longestAnswer = 64 * 1024;

export interface FetchOptions {
  /** Names the setting to correct in messages, e.g. `DEEPSEEK_BASE_URL`. */
  readonly baseUrlFrom: string;
  /** Changes the JSON text that is sent. */
  readonly rewriteBody?: (body: string) => string;
}

/**
 * `fetch` for one model call: tells the watch of every byte, follows no redirect (a POST would lose its body), and
 * refuses an answer that is no event stream in words about the base URL, which is nearly always what is wrong then.
 */
export function providerFetch(watch: CallWatch, options: FetchOptions): Fetch {
  return async (input, init) => {
    const body = init?.body;
    const response = await fetch(input, {
      ...init,
      redirect: "manual",
      ...(typeof body === "string" && options.rewriteBody !== undefined
        ? { body: options.rewriteBody(body) }
        : {}),
    });
    watch.touch();
    const target = shownUrl(input instanceof Request ? input.url : String(input));
    if (response.status >= 300 && response.status < 400) {
      await response.body?.cancel();
      const to = response.headers.get("location") ?? "nowhere";
      throw new LonghaulError(
        "INVALID_CONFIG",
        `expected a model provider at ${target}, got a redirect (${response.status}) to ${to}; correct ${options.baseUrlFrom}`,
      );
    }
    const type = response.headers.get("content-type")?.toLowerCase() ?? "";
    if (type.includes("html") && (response.ok || response.status === 404)) {
      await response.body?.cancel();
      throw new LonghaulError(
        "INVALID_CONFIG",
        `expected a model provider at ${target}, got a web page (${response.status}); correct ${options.baseUrlFrom}`,
      );
    }
    if (!response.ok || response.body === null) return response;
    if (/^application\/(?:problem\+)?json\b/.test(type)) {
      const text = await readSome(response.body);
      if (/"(?:choices|content)"\s*:/.test(text)) {
        throw new LonghaulError(
          "INVALID_CONFIG",
          `expected a stream of events from ${target}, got one JSON answer: the server does not stream; correct ${options.baseUrlFrom}`,
        );
      }
      throw new ReportedError({ headers: Object.fromEntries(response.headers), body: text });
    }
    return new Response(response.body.pipeThrough(touching(watch)), {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
    });
  };
}

function touching(watch: CallWatch): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      watch.touch();
      controller.enqueue(chunk);
    },
  });
}

async function readSome(body: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > longestAnswer) break;
  }
  return text;
}

/** A URL without what may be secret in it. */
function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
