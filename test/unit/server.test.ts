import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { extractMember } from "../../src/server/archive.js";
import { compareVersions, parseVersion } from "../../src/server/binary.js";
import { clusterFromEnvironment } from "../../src/server/cluster.js";
import { archiveQuery } from "../../src/server/download.js";
import { cacheDirectory, environmentForPrograms } from "../../src/server/environment.js";
import { portsOfCommand, serverCommand } from "../../src/server/launch.js";
import { boundLog, lastLines } from "../../src/server/log-file.js";
import { anyFreePorts, arePortsFree, ownsPort } from "../../src/server/ports.js";
import { readState, serverPaths, sweepUsers, writeState } from "../../src/server/state.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "longhaul-server-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

describe("versions", () => {
  test("the version is read from what the CLI prints, and from nothing else", () => {
    expect(parseVersion("temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)\n")).toBe("1.9.1");
    expect(parseVersion("temporal version v1.10.0-rc.1 (Server 1.33.0)")).toBe("1.10.0-rc.1");
    expect(parseVersion("tctl version 1.18.0")).toBeUndefined();
    expect(parseVersion("")).toBeUndefined();
  });

  test("versions are ordered by number, not by text", () => {
    expect(compareVersions("1.10.0", "1.9.1")).toBeGreaterThan(0);
    expect(compareVersions("1.4.99", "1.5.0")).toBeLessThan(0);
    expect(compareVersions("2.0.0-rc.1", "2.0.0")).toBe(0);
  });
});

describe("the environment", () => {
  test("each system's cache directory is used", () => {
    const env = { HOME: "/h", LOCALAPPDATA: "C:\\l" };
    expect(cacheDirectory(env, "linux")).toBe("/h/.cache/longhaul");
    expect(cacheDirectory({ ...env, XDG_CACHE_HOME: "/x" }, "linux")).toBe("/x/longhaul");
    expect(cacheDirectory({ ...env, XDG_CACHE_HOME: "/x" }, "darwin")).toBe(
      "/h/Library/Caches/longhaul",
    );
    expect(cacheDirectory(env, "win32")).toBe(join("C:\\l", "longhaul"));
  });

  test("programs that are started see no secret and no Temporal client setting", () => {
    const env = {
      PATH: "/bin",
      ANTHROPIC_API_KEY: "s",
      GH_TOKEN: "s",
      DB_PASSWORD: "s",
      TEMPORAL_NAMESPACE: "n",
      PYENV_ROOT: "/p",
      UNSET: undefined,
    };
    expect(environmentForPrograms(env)).toEqual({ PATH: "/bin", PYENV_ROOT: "/p" });
  });
});

describe("a cluster named by the environment", () => {
  test("nothing named, or an empty name, means the embedded server", () => {
    const env = { HOME: directory, XDG_CONFIG_HOME: directory };
    expect(clusterFromEnvironment(env)).toBeUndefined();
    expect(clusterFromEnvironment({ ...env, TEMPORAL_ADDRESS: "" })).toBeUndefined();
    expect(clusterFromEnvironment({ ...env, TEMPORAL_NAMESPACE: "n" })).toBeUndefined();
  });

  test("address, namespace, API key and metadata reach the connection, and a key turns TLS on", () => {
    const cluster = clusterFromEnvironment({
      HOME: directory,
      TEMPORAL_ADDRESS: "cloud.example:7233",
      TEMPORAL_NAMESPACE: "prod",
      TEMPORAL_API_KEY: "secret",
      TEMPORAL_GRPC_META_X_TEAM: "a",
    });
    expect(cluster).toMatchObject({ address: "cloud.example:7233", namespace: "prod" });
    expect(cluster?.connection).toEqual({
      address: "cloud.example:7233",
      apiKey: "secret",
      tls: true,
      metadata: { "x-team": "a" },
    });
  });

  test("a profile of a configuration file gives address, namespace and certificates", () => {
    const file = join(directory, "temporal.toml");
    writeFileSync(join(directory, "cert.pem"), "CERT");
    writeFileSync(join(directory, "key.pem"), "KEY");
    writeFileSync(
      file,
      `[profile.prod]
address = "mtls.example:7233"
namespace = "orders"
[profile.prod.tls]
server_name = "inner.example"
client_cert_path = ${JSON.stringify(join(directory, "cert.pem"))}
client_key_path = ${JSON.stringify(join(directory, "key.pem"))}
`,
    );
    const cluster = clusterFromEnvironment({
      TEMPORAL_CONFIG_FILE: file,
      TEMPORAL_PROFILE: "prod",
    });
    expect(cluster).toMatchObject({ address: "mtls.example:7233", namespace: "orders" });
    expect(cluster?.connection.tls).toMatchObject({
      serverNameOverride: "inner.example",
      clientCertPair: {
        crt: new Uint8Array(Buffer.from("CERT")),
        key: new Uint8Array(Buffer.from("KEY")),
      },
    });
  });

  test("a profile or file that is not there is a configuration error, not another server", () => {
    const file = join(directory, "none.toml");
    const code = "INVALID_CONFIG";
    expect(() => clusterFromEnvironment({ TEMPORAL_CONFIG_FILE: file })).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(file) }),
    );
    writeFileSync(file, '[profile.prod]\naddress = "a:1"\n');
    expect(() =>
      clusterFromEnvironment({ TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: "prd" }),
    ).toThrow(expect.objectContaining({ code, message: expect.stringContaining("prd") }));
  });
});

describe("archives", () => {
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 31) % 251));
  const wanted = (path: string) => path === "temporal";
  const output = () => join(directory, "out");

  function tarOf(...names: string[]): string {
    const archive = join(directory, "a.tar.gz");
    execFileSync("tar", ["-czf", archive, "-C", directory, ...names]);
    return archive;
  }

  function zipOf(method: "DEFLATED" | "STORED"): string {
    const archive = join(directory, "a.zip");
    const script = `import sys, zipfile
z = zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_${method})
z.write(sys.argv[2] + "/LICENSE", "LICENSE")
z.write(sys.argv[2] + "/temporal", "temporal")
z.close()`;
    execFileSync("python3", ["-c", script, archive, directory]);
    return archive;
  }

  beforeEach(() => {
    writeFileSync(join(directory, "LICENSE"), "words\n".repeat(1000));
    writeFileSync(join(directory, "temporal"), content);
  });

  test.each([
    ["tar.gz", () => tarOf("LICENSE", "temporal")],
    ["tar.gz with ./ before its names", () => tarOf("./LICENSE", "./temporal")],
    ["compressed zip", () => zipOf("DEFLATED")],
    ["plain zip", () => zipOf("STORED")],
  ])("the named file comes out of a %s whole", async (_, pack) => {
    await extractMember(pack(), wanted, output());
    expect(readFileSync(output()).equals(content)).toBe(true);
  });

  test.each([
    ["tar.gz", () => tarOf("LICENSE")],
    ["zip", () => zipOf("STORED")],
  ])("a file that a %s does not hold is missed by name", async (_, pack) => {
    await expect(extractMember(pack(), (path) => path === "nope", output())).rejects.toThrow(
      "does not hold",
    );
  });

  test.each([
    ["tar.gz", () => tarOf("LICENSE", "temporal")],
    ["zip", () => zipOf("DEFLATED")],
    ["plain zip", () => zipOf("STORED")],
  ])("a %s that was cut short or altered is refused", async (_, pack) => {
    const archive = pack();
    const whole = readFileSync(archive);
    writeFileSync(archive, whole.subarray(0, whole.length - 200));
    await expect(extractMember(archive, wanted, output())).rejects.toThrow(Error);
    const altered = Buffer.from(whole);
    const middle = Math.floor(whole.length * 0.6);
    altered[middle] = (altered[middle] ?? 0) ^ 0xff;
    writeFileSync(archive, altered);
    await expect(extractMember(archive, wanted, output())).rejects.toThrow(Error);
  });

  test("something else than an archive is refused", async () => {
    const page = join(directory, "page");
    writeFileSync(page, "<html>");
    await expect(extractMember(page, wanted, output())).rejects.toThrow("neither");
  });
});

describe("the download service's question", () => {
  test("names release, platform, architecture and format", () => {
    expect(archiveQuery("https://x.example/", "linux", "x64").href).toBe(
      "https://x.example/cli/v1.9.1?arch=amd64&platform=linux&format=tar.gz",
    );
    expect(archiveQuery("https://x.example", "win32", "arm64").href).toBe(
      "https://x.example/cli/v1.9.1?arch=arm64&platform=windows&format=zip",
    );
    expect(() => archiveQuery("https://x.example", "aix", "ppc64")).toThrow("no build");
  });
});

describe("state, log and ports", () => {
  test("the ports of a running server are read from its command line", () => {
    const paths = serverPaths("/data dir");
    const command = ["temporal", ...serverCommand(paths), "--port", "7243", "--ui-port", "8243"];
    expect(portsOfCommand(command.join(" "))).toEqual({ port: 7243, uiPort: 8243 });
    expect(portsOfCommand("temporal server start-dev")).toBeUndefined();
  });

  test("a damaged state file counts as empty", async () => {
    const paths = serverPaths(directory);
    const user = { pid: 1, started: "never", id: "u", since: 0 };
    await writeState(paths, { keep: true, users: [user] });
    expect(await readState(paths)).toEqual({ keep: true, users: [user] });
    writeFileSync(paths.state, '{"users": [');
    expect(await readState(paths)).toEqual({ keep: false, users: [] });
    writeFileSync(paths.state, '{"users": [{"pid": "x"}], "keep": false}');
    expect(await readState(paths)).toEqual({ keep: false, users: [] });
  });

  test("a user whose pid belongs to another program by now is swept", async () => {
    const reused = { pid: process.pid, started: "long ago", id: "a", since: 0 };
    expect((await sweepUsers({ keep: false, users: [reused] })).users).toEqual([]);
  });

  test("a log over its limit is emptied under its writer, and the old text kept once", async () => {
    const file = join(directory, "server.log");
    writeFileSync(file, "old line\n".repeat(100));
    await boundLog(file, 1000);
    expect(readFileSync(file, "utf8")).toHaveLength(900);
    await boundLog(file, 500);
    expect(readFileSync(file, "utf8")).toBe("");
    expect(readFileSync(`${file}.1`, "utf8")).toHaveLength(900);
  });

  test("the last lines of a log are its last lines with text", async () => {
    const file = join(directory, "server.log");
    expect(await lastLines(file, 3)).toEqual([]);
    writeFileSync(file, `${"x".repeat(40_000)}\none\n\ntwo\nthree\n\n`);
    expect(await lastLines(file, 3)).toEqual(["one", "two", "three"]);
  });

  test.runIf(process.platform === "linux")(
    "the process that listens on a port is told from one that does not",
    async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const address = server.address();
      const port = typeof address === "object" ? (address?.port ?? 0) : 0;
      const [free = 0] = await anyFreePorts(1);
      expect(await ownsPort(process.pid, port)).toBe(true);
      expect(await ownsPort(process.ppid, port)).toBe(false);
      expect(await arePortsFree({ port: free, uiPort: port })).toBe(false);
      await new Promise((resolve) => server.close(resolve));
      expect(await arePortsFree({ port: free, uiPort: port })).toBe(true);
      expect(await ownsPort(process.pid, port)).toBe(false);
    },
  );
});
