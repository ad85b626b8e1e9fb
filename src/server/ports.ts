import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import type { ServerPorts } from "./state.js";

const usualPorts: ServerPorts = { port: 7233, uiPort: 8233 };

/** The usual ports when both are free, else the next free pair, well below what the system hands out. */
export async function choosePorts(): Promise<ServerPorts> {
  for (let step = 0; step < 100; step += 1) {
    const ports = { port: usualPorts.port + 10 * step, uiPort: usualPorts.uiPort + 10 * step };
    if (await arePortsFree(ports)) return ports;
  }
  const [port = 0, uiPort = 0] = await anyFreePorts(2);
  return { port, uiPort };
}

export async function arePortsFree(ports: ServerPorts): Promise<boolean> {
  return (await isPortFree(ports.port)) && (await isPortFree(ports.uiPort));
}

/** Nobody listens on it, on the loopback address or on all addresses. */
async function isPortFree(port: number): Promise<boolean> {
  if (await answers(port)) return false;
  const server = await listen(port).catch(() => undefined);
  if (server === undefined) return false;
  await close(server);
  return true;
}

/** Distinct free ports of the system's choice. */
export async function anyFreePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(0)));
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  });
  await Promise.all(servers.map(close));
  return ports;
}

/** Something accepts connections there. */
export function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", timeout: 2_000 });
    const end = (result: boolean) => {
      socket.destroy();
      resolve(result);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
    socket.once("timeout", () => end(true));
  });
}

/**
 * Whether the process itself listens on the port: a server that answers there may be another one, which
 * took the port first. Undefined where the system does not tell.
 */
export async function ownsPort(pid: number, port: number): Promise<boolean | undefined> {
  if (process.platform === "linux") return ownsPortInProc(pid, port);
  if (process.platform === "darwin") return ownsPortByLsof(pid, port);
  return undefined;
}

async function ownsPortInProc(pid: number, port: number): Promise<boolean | undefined> {
  const inodes = new Set<string>();
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  for (const table of ["tcp", "tcp6"]) {
    const text = await readFile(`/proc/${pid}/net/${table}`, "utf8").catch(() => "");
    for (const line of text.split("\n")) {
      const fields = line.trim().split(/\s+/);
      const listening = fields[3] === "0A";
      if (listening && fields[1]?.endsWith(`:${hexPort}`) === true) inodes.add(fields[9] ?? "");
    }
  }
  const links = await readdir(`/proc/${pid}/fd`).catch(() => undefined);
  if (links === undefined) return undefined;
  for (const fd of links) {
    const target = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => "");
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    if (inode !== undefined && inodes.has(inode)) return true;
  }
  return false;
}

function ownsPortByLsof(pid: number, port: number): Promise<boolean | undefined> {
  const args = ["-nP", "-a", "-p", String(pid), `-iTCP:${port}`, "-sTCP:LISTEN", "-t"];
  return new Promise((resolve) => {
    execFile("lsof", args, { encoding: "utf8" }, (error, stdout) => {
      if (error?.code === "ENOENT") resolve(undefined);
      else resolve(stdout.trim() !== "");
    });
  });
}

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(server));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
