import { lookup } from "node:dns/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { pipeline, type Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";

import { LonghaulError } from "../contracts/errors.js";
import { bareHost, hostMatches, isPublicAddress, parseWebUrl } from "./web-address.js";

export interface WebRules {
  /** Hosts that may be asked, redirects included; absent: any public one. */
  readonly allowHosts?: readonly string[];
  /** Name to addresses; default: the system's resolver. */
  readonly resolve: (host: string) => Promise<readonly string[]>;
  /** Which addresses may be connected to; default: public ones. */
  readonly permits: (address: string) => boolean;
}

export interface WebAnswer {
  /** After redirects. */
  readonly url: string;
  readonly status: number;
  readonly statusText: string;
  readonly contentType: string;
  readonly bytes: Buffer;
  /** There was more than the limit. */
  readonly cut: boolean;
}

export const defaultRules: WebRules = {
  resolve: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
  permits: isPublicAddress,
};

const maxRedirects = 5;

/** One GET with its redirects, each of which is checked like the first. Throws TOOL_DENIED, INVALID_ARGS, TOOL_FAILED. */
export async function fetchPage(
  start: string,
  maxBytes: number,
  rules: WebRules,
  signal: AbortSignal,
): Promise<WebAnswer> {
  let url = parseWebUrl(start);
  for (let redirects = 0; ; redirects += 1) {
    const addresses = await checkedAddresses(url, rules, signal);
    const response = await open(url, addresses, signal);
    const { statusCode: status = 0, headers } = response;
    const target = status >= 300 && status < 400 ? headers.location : undefined;
    if (target === undefined) {
      const { bytes, cut } = await readBody(response, maxBytes, url, signal);
      return {
        url: url.href,
        status,
        statusText: response.statusMessage ?? "",
        contentType: headers["content-type"] ?? "",
        bytes,
        cut,
      };
    }
    response.destroy();
    if (redirects === maxRedirects)
      throw failed(url, `it redirects more than ${maxRedirects} times`);
    url = parseWebUrl(target, url);
  }
}

/** The addresses to connect to. Every one of the name must be permitted, so that none can be slipped in. */
async function checkedAddresses(
  url: URL,
  rules: WebRules,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const host = bareHost(url);
  const { allowHosts } = rules;
  if (allowHosts !== undefined && !allowHosts.some((pattern) => hostMatches(pattern, host)))
    throw denied(url, `this deployment allows ${allowHosts.join(", ") || "no host"} only`);
  let addresses: readonly string[] = [host];
  if (isIP(host) === 0) {
    addresses = await unlessAborted(rules.resolve(host), signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw failed(url, `the name ${host} cannot be resolved (${codeOf(error)})`);
    });
  }
  if (addresses.length === 0) throw failed(url, `the name ${host} has no address`);
  if (!addresses.every((address) => rules.permits(address)))
    throw denied(url, `${host} is not an address on the public internet`);
  return addresses;
}

/** The system's resolver cannot be stopped, but need not be waited for. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return await new Promise((resolve, reject) => {
    const stop = (): void => reject(new Error("stopped"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Connects to the checked addresses and no others, whatever the name means by now. */
async function open(
  url: URL,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const checked = addresses.map((address) => ({ address, family: isIP(address) }));
  const pinned: LookupFunction = (_host, options, done) => {
    const [first] = checked;
    if (options.all === true || first === undefined) done(null, checked);
    else done(null, first.address, first.family);
  };
  const request = url.protocol === "https:" ? httpsRequest : httpRequest;
  return await new Promise((resolve, reject) => {
    const sent = request(url, {
      agent: false,
      lookup: pinned,
      signal,
      headers: {
        accept: "text/html, text/plain;q=0.9, */*;q=0.5",
        "accept-encoding": "gzip, deflate, br",
        "user-agent": "longhaul",
      },
    });
    sent.on("response", resolve);
    sent.on("error", (error) => {
      if (signal.aborted) reject(error);
      else reject(failed(url, `the connection failed (${codeOf(error)})`));
    });
    sent.end();
  });
}

async function readBody(
  response: IncomingMessage,
  maxBytes: number,
  url: URL,
  signal: AbortSignal,
): Promise<{ readonly bytes: Buffer; readonly cut: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of decoded(response)) {
      if (!Buffer.isBuffer(chunk)) continue;
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxBytes) break;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw failed(url, `the answer broke off or cannot be unpacked (${codeOf(error)})`);
  } finally {
    response.destroy();
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), cut: size > maxBytes };
}

function decoded(response: IncomingMessage): Readable {
  const unpack = unpackerOf((response.headers["content-encoding"] ?? "").trim().toLowerCase());
  if (unpack === undefined) return response;
  // Its error is also the error of the unpacked stream, which is read.
  return pipeline(response, unpack, () => {});
}

function unpackerOf(encoding: string): Transform | undefined {
  if (encoding === "gzip" || encoding === "x-gzip") return createGunzip();
  if (encoding === "deflate") return createInflate();
  return encoding === "br" ? createBrotliDecompress() : undefined;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error ? String(error.code) : error.message;
}

function failed(url: URL, reason: string): LonghaulError {
  return new LonghaulError("TOOL_FAILED", `cannot fetch ${url.href.slice(0, 300)}: ${reason}`);
}

function denied(url: URL, reason: string): LonghaulError {
  return new LonghaulError("TOOL_DENIED", `cannot fetch ${url.href.slice(0, 300)}: ${reason}`);
}
