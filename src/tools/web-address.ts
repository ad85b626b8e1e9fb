import { BlockList, isIP, isIPv4 } from "node:net";

import { LonghaulError } from "../contracts/errors.js";

/** Not on the public internet, or not one host (IANA special-purpose registries). */
const closed: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.31.196.0", 24],
  ["192.52.193.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["192.175.48.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
  // Platform services of a cloud on a public address.
  ["168.63.129.16", 32],
  // IPv6 below the one block of public addresses: special purposes, documentation, tunnels that hold an IPv4 address.
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["2620:4f:8000::", 48],
  ["3fff::", 20],
];

const closedList = new BlockList();
for (const [network, prefix] of closed)
  closedList.addSubnet(network, prefix, isIPv4(network) ? "ipv4" : "ipv6");
const publicV6 = new BlockList();
publicV6.addSubnet("2000::", 3, "ipv6");

/** May a tool connect to this IP address? Only public unicast ones; a mapped or translated IPv4 address never. */
export function isPublicAddress(address: string): boolean {
  const family = address.includes("%") ? 0 : isIP(address);
  if (family === 4) return !closedList.check(address, "ipv4");
  return family === 6 && publicV6.check(address, "ipv6") && !closedList.check(address, "ipv6");
}

/** Reads a URL a model gave: http or https, no credentials, the host as a name or a plain address. Throws INVALID_ARGS. */
export function parseWebUrl(text: string, base?: URL): URL {
  let url: URL;
  try {
    url = new URL(text, base);
  } catch {
    throw refused(text, "it is not a URL; give one like https://example.com/page");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw refused(text, `only http and https are fetched, not ${url.protocol.slice(0, -1)}`);
  if (url.username !== "" || url.password !== "")
    throw refused(`${url.protocol}//…@${url.host}`, "it carries credentials; leave them out");
  const { hostname } = url;
  const given = /^[a-z]+:[\\/]*([^\\/?#]*)/i.exec(text.trim())?.[1] ?? hostname;
  // The parser reads 2130706433, 0x7f.1 and 0177.0.0.1 as 127.0.0.1; who writes so wants to hide something.
  if (
    isIPv4(hostname) &&
    given !== hostname &&
    given !== url.host &&
    !given.startsWith(`${hostname}:`)
  )
    throw refused(text, `write the address as ${hostname}`);
  return url;
}

/** The host without the brackets of an IPv6 address. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}

/** `example.com`, or `*.example.com` for all names below it. */
export function hostMatches(pattern: string, host: string): boolean {
  const [wanted, name] = [pattern.toLowerCase(), host.toLowerCase().replace(/\.$/, "")];
  return wanted.startsWith("*.") ? name.endsWith(wanted.slice(1)) : name === wanted;
}

function refused(url: string, reason: string): LonghaulError {
  return new LonghaulError("INVALID_ARGS", `cannot fetch ${url.slice(0, 300)}: ${reason}`);
}
