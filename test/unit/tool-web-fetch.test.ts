import { createServer, type RequestListener } from "node:http";
import { createServer as createTcpServer, type Server } from "node:net";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished, vi } from "vitest";

import { isPublicAddress, parseWebUrl } from "../../src/tools/web-address.js";
import { htmlToText } from "../../src/tools/html-text.js";
import { webFetch, type WebFetchOptions } from "../../src/tools/web-fetch.js";
import { type Bench, openBench, patience, textOf } from "./process-fixtures.js";

async function listen(server: Server, host = "127.0.0.1"): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(async () => {
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

interface Site {
  readonly bench: Bench;
  readonly port: number;
  readonly resolve: ReturnType<typeof vi.fn<(host: string) => Promise<string[]>>>;
  fetch(path: string, more?: object): ReturnType<Bench["call"]>;
}

/** A server at `site.test`, the only name there is, and at the only address that is permitted. */
async function openSite(
  answer: RequestListener,
  more: Partial<WebFetchOptions> = {},
): Promise<Site> {
  const server = createServer(answer);
  const port = await listen(server);
  const resolve = vi.fn(async (host: string) => {
    if (host !== "site.test") throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
    return ["127.0.0.1"];
  });
  const permits = (address: string) => address === "127.0.0.1";
  const bench = await openBench([...webFetch({ allow: true, resolve, permits, ...more })]);
  const fetch = async (path: string, args: object = {}) =>
    await bench.call("web_fetch", { url: `http://site.test:${port}${path}`, ...args });
  return { bench, port, resolve, fetch };
}

describe("web_fetch", () => {
  it("is not offered unless the deployment allows it, and then runs on any worker", () => {
    expect(webFetch({ allow: false })).toEqual([]);
    expect(webFetch({ allow: true }).map(({ row }) => row)).toMatchObject([
      { name: "web_fetch", where: "shared", parallel: true, idempotent: true, timeoutMs: 30_000 },
    ]);
  });

  it("gives a page as text with its address, in the page's own encoding", async () => {
    const pages: Record<string, [string, Buffer]> = {
      "/html": [
        "text/html",
        Buffer.from("<title>T</title><p>Hällo <b>you</b><script>no()</script>"),
      ],
      "/latin": ["text/html; charset=ISO-8859-1", Buffer.from("<p>caf\xe9", "latin1")],
      "/meta": ["text/html", Buffer.from("<meta charset='koi8-r'><p>\xc1", "latin1")],
      "/text": ["text/plain", Buffer.from("<p>\n as it is")],
      "/json": ["application/json", Buffer.from('{"a":1}')],
      "/odd": ["text/plain; charset=klingon", Buffer.from("ö")],
      "/none": ["", Buffer.from("")],
      "/image": ["image/png", Buffer.from([1, 0, 2])],
      "/fake": ["text/plain", Buffer.from([65, 0, 66])],
    };
    const site = await openSite((request, response) => {
      const [type, body] = pages[request.url ?? ""] ?? ["", Buffer.alloc(0)];
      if (type !== "") response.setHeader("content-type", type);
      response.end(body);
    });
    const body = async (path: string) => textOf(await site.fetch(path)).replace(/^.*?\n/, "");
    expect(textOf(await site.fetch("/html"))).toBe(
      `[http://site.test:${site.port}/html 200 OK]\nT\n\nHällo you`,
    );
    expect(await body("/latin")).toBe("café");
    expect(await body("/meta")).toBe("а");
    expect(await body("/text")).toBe("<p>\n as it is");
    expect(await body("/json")).toBe('{"a":1}');
    expect(await body("/odd")).toBe("ö");
    expect(await body("/none")).toBe("(empty)");
    expect(await body("/image")).toBe("[not text: image/png, 3 bytes]");
    expect(await body("/fake")).toBe("[not text: text/plain, 3 bytes]");
    expect((await site.fetch("/json")).meta).toEqual({
      status: 200,
      url: `http://site.test:${site.port}/json`,
      bytes: 7,
      contentType: "application/json",
    });
  });

  it("sends a plain GET that names its host and carries no credentials", async () => {
    const seen: object[] = [];
    const site = await openSite((request, response) => {
      seen.push({ method: request.method, ...request.headers });
      response.end("ok");
    });
    await site.fetch("/a?b=c#d");
    expect(seen).toEqual([
      {
        method: "GET",
        host: `site.test:${site.port}`,
        accept: expect.any(String),
        "accept-encoding": "gzip, deflate, br",
        "user-agent": "longhaul",
        connection: "close",
      },
    ]);
  });

  it("reads no more than maxBytes, packed or not, and says so", async () => {
    const page = Buffer.alloc(3_000_000, "a");
    const site = await openSite((request, response) => {
      response.setHeader("content-type", "text/plain");
      const packed: Record<string, Buffer> = { gzip: gzipSync(page), br: brotliCompressSync(page) };
      const encoding = request.url?.slice(1) ?? "";
      if (packed[encoding] !== undefined) response.setHeader("content-encoding", encoding);
      response.end(packed[encoding] ?? page);
    });
    for (const path of ["/", "/gzip", "/br"]) {
      const outcome = await site.fetch(path, { maxBytes: 1_000 });
      expect(outcome.meta?.["bytes"]).toBe(1_000);
      expect(textOf(outcome)).toMatch(
        /\]\na{1000}\n\[cut after 1000 bytes; raise maxBytes for more\]$/,
      );
    }
    const whole = await site.fetch("/gzip", { maxBytes: 3_000_000 });
    expect(whole.meta?.["bytes"]).toBe(3_000_000);
    expect(Buffer.byteLength(textOf(whole))).toBeLessThanOrEqual(50_000);
    expect(textOf(whole)).toContain("full text: ");
  });

  it("makes a status that is no success an error, with the page", async () => {
    const site = await openSite((_, response) => {
      response.writeHead(404, { "content-type": "text/plain" }).end("no such page");
    });
    const outcome = await site.fetch("/x");
    expect([outcome.error?.code, outcome.meta?.["status"]]).toEqual(["TOOL_FAILED", 404]);
    expect(textOf(outcome)).toBe(
      `Error: http://site.test:${site.port}/x 404 Not Found\nno such page`,
    );
  });

  it("follows five redirects and not a sixth, and checks each one", async () => {
    const inner = await openSite((_, response) => response.end("secret"));
    const site = await openSite((request, response) => {
      const [, step = "", to = ""] = (request.url ?? "").split("/");
      const target = step === "to" ? decodeURIComponent(to) : `/${Number(step) - 1}`;
      if (step === "0") response.end("arrived");
      else response.writeHead(302, { location: target }).end("moved");
    });
    expect(textOf(await site.fetch("/5"))).toBe(
      `[http://site.test:${site.port}/0 200 OK]\narrived`,
    );
    expect(textOf(await site.fetch("/6"))).toBe(
      `Error: cannot fetch http://site.test:${site.port}/1: it redirects more than 5 times`,
    );
    const targets: [string, string][] = [
      [`http://[::1]:${inner.port}/`, "TOOL_DENIED"],
      ["http://169.254.169.254/latest/meta-data", "TOOL_DENIED"],
      ["http://2130706433/", "INVALID_ARGS"],
      [`http://user:pw@site.test:${site.port}/0`, "INVALID_ARGS"],
      ["file:///etc/passwd", "INVALID_ARGS"],
      ["http://", "INVALID_ARGS"],
    ];
    for (const [target, code] of targets) {
      const outcome = await site.fetch(`/to/${encodeURIComponent(target)}`);
      expect([target, outcome.error?.code]).toEqual([target, code]);
      expect(textOf(outcome)).not.toMatch(/\n|pw/);
    }
  });

  it("connects to the address it has checked, though the name means another by then", async () => {
    const inner = vi.fn();
    const answers = [["127.0.0.1"], ["127.0.0.2"]];
    const resolve = vi.fn(async () => answers.shift() ?? []);
    const site = await openSite((_, response) => response.end("outer"), { resolve });
    const rebound = createServer((_, response) => response.end(inner()));
    await new Promise<void>((done) => rebound.listen(site.port, "127.0.0.2", done));
    onTestFinished(() => void rebound.close());
    expect(textOf(await site.fetch("/"))).toMatch(/outer$/);
    expect(resolve).toHaveBeenCalledTimes(1);
    const second = await site.fetch("/");
    expect(second.error?.code).toBe("TOOL_DENIED");
    expect(inner).not.toHaveBeenCalled();
  });

  it("refuses a name of which one address is not permitted, whatever its place", async () => {
    const hit = vi.fn();
    for (const addresses of [
      ["127.0.0.1", "10.0.0.1"],
      ["10.0.0.1", "127.0.0.1"],
      ["::ffff:127.0.0.1"],
    ]) {
      const site = await openSite(hit, { resolve: async () => addresses });
      const outcome = await site.fetch("/");
      expect(outcome.error?.code).toBe("TOOL_DENIED");
      expect(textOf(outcome)).toBe(
        `Error: cannot fetch http://site.test:${site.port}/: site.test is not an address on the public internet`,
      );
    }
    expect(hit).not.toHaveBeenCalled();
  });

  it("asks only hosts that are allowed, before it resolves anything", async () => {
    const site = await openSite((_, response) => response.end("ok"), {
      allowHosts: ["*.site.test", "other.test"],
    });
    const outcome = await site.fetch("/");
    expect(textOf(outcome)).toBe(
      `Error: cannot fetch http://site.test:${site.port}/: this deployment allows *.site.test, other.test only`,
    );
    expect(site.resolve).not.toHaveBeenCalled();
    const url = `http://a.SITE.test.:${site.port}/`;
    expect(textOf(await site.bench.call("web_fetch", { url }))).toContain(
      "cannot be resolved (ENOTFOUND)",
    );
    const none = await openSite((_, response) => response.end("ok"), { allowHosts: ["site.test"] });
    expect((await none.fetch("/")).isError).toBe(false);
  });

  it("reaches nothing on this machine or its network by default", async () => {
    const hit = vi.fn();
    const port = await listen(createServer(hit));
    const bench = await openBench([...webFetch({ allow: true })]);
    for (const host of [
      "127.0.0.1",
      "localhost",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "0.0.0.0",
      "[::]",
    ]) {
      const outcome = await bench.call("web_fetch", { url: `http://${host}:${port}/` });
      expect([host, outcome.error?.code]).toEqual([host, "TOOL_DENIED"]);
    }
    for (const host of ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "①②⑦.0.0.1"]) {
      const outcome = await bench.call("web_fetch", { url: `http://${host}:${port}/` });
      expect([host, outcome.error?.code]).toEqual([host, "INVALID_ARGS"]);
    }
    expect(hit).not.toHaveBeenCalled();
  });

  it("fails in one line for a server that breaks off, lies or is not there", async () => {
    const raw = async (bytes: string): Promise<string> => {
      const server = createTcpServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => socket.end(bytes));
      });
      const port = await listen(server);
      const bench = await openBench([
        ...webFetch({ allow: true, permits: () => true, resolve: async () => ["127.0.0.1"] }),
      ]);
      const outcome = await bench.call("web_fetch", { url: `http://site.test:${port}/` });
      expect(outcome.error?.code).toBe("TOOL_FAILED");
      return textOf(outcome).replace(/^Error: cannot fetch http:\/\/site.test:\d+\/: /, "");
    };
    expect(await raw("")).toBe("the connection failed (ECONNRESET)");
    expect(await raw("SSH-2.0-x\r\n")).toMatch(/^the connection failed \(HPE_\w+\)$/);
    expect(await raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort")).toBe(
      "the answer broke off or cannot be unpacked (ECONNRESET)",
    );
    expect(await raw("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nno gzip")).toBe(
      "the answer broke off or cannot be unpacked (Z_DATA_ERROR)",
    );
    expect(await raw(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}\r\n\r\n`)).toMatch(
      /connection failed/,
    );
    const site = await openSite(() => {}, { resolve: async () => [] });
    expect(textOf(await site.fetch("/"))).toMatch(/the name site\.test has no address$/);
  });

  it("ends at its deadline and on cancel while the server is silent", async () => {
    const seen = vi.fn();
    const site = await openSite((request, response) => {
      seen(request.url);
      if (request.url === "/body") response.write("begin");
    });
    for (const path of ["/head", "/body"]) {
      const late = await site.bench.call(
        "web_fetch",
        { url: `http://site.test:${site.port}${path}` },
        { timeoutMs: 200 },
      );
      expect([path, late.error?.code]).toEqual([path, "TOOL_TIMEOUT"]);
    }
    const abort = new AbortController();
    const call = site.bench.call(
      "web_fetch",
      { url: `http://site.test:${site.port}/cancel` },
      { signal: abort.signal },
    );
    await vi.waitFor(() => expect(seen).toHaveBeenCalledWith("/cancel"), patience);
    abort.abort();
    expect((await call).error?.code).toBe("ABORTED");
    const stuck = await openSite(() => {}, { resolve: () => new Promise(() => {}) });
    const unresolved = { url: "http://site.test/" };
    expect((await stuck.bench.call("web_fetch", unresolved, { timeoutMs: 50 })).error?.code).toBe(
      "TOOL_TIMEOUT",
    );
  });
});

describe("isPublicAddress", () => {
  it("takes public unicast addresses only", () => {
    const open = [
      "1.1.1.1",
      "8.8.8.8",
      "100.63.255.255",
      "100.128.0.0",
      "172.15.0.1",
      "172.32.0.1",
      "192.0.1.1",
      "223.255.255.255",
      "2606:4700:4700::1111",
      "2a00:1450::1",
      "2001:4860:4860::8888",
    ];
    const shut = [
      "0.0.0.0",
      "0.1.2.3",
      "10.0.0.1",
      "100.64.0.1",
      "100.127.255.255",
      "100.100.100.200",
      "127.0.0.1",
      "127.255.255.254",
      "169.254.169.254",
      "169.254.170.2",
      "172.16.0.1",
      "172.31.255.255",
      "192.0.0.192",
      "192.0.2.1",
      "192.88.99.1",
      "192.168.0.1",
      "198.18.0.1",
      "198.19.255.255",
      "198.51.100.1",
      "203.0.113.1",
      "224.0.0.1",
      "239.255.255.255",
      "240.0.0.1",
      "255.255.255.255",
      "168.63.129.16",
      "::",
      "::1",
      "::7f00:1",
      "::ffff:127.0.0.1",
      "::ffff:8.8.8.8",
      "64:ff9b::7f00:1",
      "64:ff9b:1::1",
      "100::1",
      "2001::1",
      "2001:db8::1",
      "2002:7f00:1::",
      "3fff::1",
      "5f00::1",
      "fc00::1",
      "fd00:ec2::254",
      "fe80::1",
      "fe80::1%eth0",
      "fec0::1",
      "ff02::1",
      "localhost",
      "",
      "1.2.3",
    ];
    expect(open.filter((address) => !isPublicAddress(address))).toEqual([]);
    expect(shut.filter(isPublicAddress)).toEqual([]);
  });
});

describe("parseWebUrl", () => {
  it("takes http and https to a plainly written host", () => {
    for (const url of [
      "http://a.test",
      "HTTPS://A.test:8443/x?y#z",
      "http://8.8.8.8:80/",
      "http://8.8.8.8",
      "https://[2606:4700::1]/",
      "http://bücher.example/",
    ])
      expect(parseWebUrl(url).protocol).toMatch(/^https?:$/);
    const cases: Record<string, string> = {
      "a.test": "it is not a URL; give one like https://example.com/page",
      "ftp://a.test": "only http and https are fetched, not ftp",
      "file:///etc/passwd": "only http and https are fetched, not file",
      "http://u@a.test": "it carries credentials; leave them out",
      "http://134744072/": "write the address as 8.8.8.8",
      "http://0x08.8.8.8/": "write the address as 8.8.8.8",
      "http://010.8.8.8/": "write the address as 8.8.8.8",
    };
    for (const [url, reason] of Object.entries(cases))
      expect(() => parseWebUrl(url)).toThrow(new RegExp(`^cannot fetch .*: ${reason}$`));
  });
});

describe("htmlToText", () => {
  const text = (html: string) => htmlToText(html, "https://site.test/dir/page");

  it("keeps what a reader would see", () => {
    expect(
      text(`<html><head><title> The
        title </title><style>p{}</style></head><body><nav>Menu</nav>
        <h1>Head &amp; shoulders</h1><p>One <i>two</i>
        three.<br>New line</p><ul><li>a<li>b <a href="../x?y=1">link</a></ul>
        <table><tr><th>k<th>v<tr><td>1<td>2</table>
        <pre>  keep
    this</pre><img src=x alt="A cat"><img src=y>
        <script>if (a < b) alert("</p>")</script><a href="#top">top</a> <a href="javascript:x">js</a>
        <a href="https://site.test/dir/page">https://site.test/dir/page</a></body></html>`),
    ).toBe(
      "The title\n\n# Head & shoulders\n\nOne two three.\nNew line\n\n- a\n- b link (https://site.test/x?y=1)\n\nk | v\n1 | 2\n\n  keep\n    this\n\n[image: A cat] top js https://site.test/dir/page",
    );
  });

  it("says the title once, and survives what is broken", () => {
    expect(text("<title>Same</title><h1>Same</h1><p>x")).toBe("# Same\n\nx");
    expect(text("<p>a</div></nav>b<b>c<unknown>d</p>&nope;&#x41;<")).toMatch(/^a\n*b ?cd/);
    expect(text("plain")).toBe("plain");
    expect(text("")).toBe("");
    expect(text(`a<div><br></div>${"</x>".repeat(300_000)}b`)).toBe("a\nb");
    expect(text("<a href=x>1<a href=y>2</a>3</a>")).toMatch(/2 \(https:\/\/site.test\/dir\/y\)/);
    for (const tag of ["<a href=x>", "<table><tr><td>", "<p><b>", "<li>"])
      expect(text(`top${tag.repeat(200_000)}deep`)).toMatch(/^top/);
    for (const tag of ["<div>", "<b>", "<svg>"])
      expect(text(`top${tag.repeat(200_000)}deep`)).toBe(
        "top\n[the rest of the page is nested too deeply]",
      );
  });
});
