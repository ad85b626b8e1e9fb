import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { extractMember } from "./archive.js";
import { pinnedVersion } from "./binary.js";
import type { Report } from "./environment.js";

export interface Download {
  /** Where the binary is written; the archive lies beside it while it is read. */
  readonly destination: string;
  readonly report: Report;
  /** The service that names the archive for a platform. */
  readonly baseUrl?: string;
  /** A connection that brings nothing for this long is given up. */
  readonly stallMs?: number;
}

const downloadService = "https://temporal.download";

/**
 * Downloads the pinned Temporal CLI: the service answers with the archive's address and the file in it.
 * Throws a plain Error whose message is the reason.
 */
export async function downloadBinary(download: Download): Promise<void> {
  const { destination, report, baseUrl = downloadService, stallMs = 20_000 } = download;
  const watch = stallWatch(stallMs);
  const archive = `${destination}.archive`;
  try {
    const found = await locate(baseUrl, watch);
    report(`downloading Temporal CLI ${pinnedVersion} from ${new URL(found.archiveUrl).host}`);
    await fetchTo(found.archiveUrl, archive, watch, report);
    const wanted = found.fileToExtract.replace(/^\.\//, "");
    await extractMember(archive, (path) => path === wanted, destination);
  } catch (error) {
    throw new Error(watch.stalled ? `no data for ${stallMs / 1000} s` : reasonOf(error), {
      cause: error,
    });
  } finally {
    watch.end();
    await rm(archive, { force: true });
  }
}

/** The address to ask for the archive of one platform. */
export function archiveQuery(baseUrl: string, platform: string, arch: string): URL {
  const arches: Record<string, string> = { x64: "amd64", arm64: "arm64" };
  const platforms: Record<string, string> = { linux: "linux", darwin: "darwin", win32: "windows" };
  const goArch = arches[arch];
  const goPlatform = platforms[platform];
  if (goArch === undefined || goPlatform === undefined) {
    throw new Error(`there is no build for ${platform} ${arch}`);
  }
  const url = new URL(`${baseUrl.replace(/\/$/, "")}/cli/v${pinnedVersion}`);
  url.searchParams.set("arch", goArch);
  url.searchParams.set("platform", goPlatform);
  url.searchParams.set("format", goPlatform === "windows" ? "zip" : "tar.gz");
  return url;
}

interface StallWatch {
  readonly signal: AbortSignal;
  readonly stalled: boolean;
  readonly progress: () => void;
  readonly end: () => void;
}

function stallWatch(stallMs: number): StallWatch {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), stallMs);
  return {
    signal: controller.signal,
    get stalled() {
      return controller.signal.aborted;
    },
    progress: () => timer.refresh(),
    end: () => clearTimeout(timer),
  };
}

async function locate(
  baseUrl: string,
  watch: StallWatch,
): Promise<{ archiveUrl: string; fileToExtract: string }> {
  const url = archiveQuery(baseUrl, process.platform, process.arch);
  const response = await request(url, watch);
  const answer: unknown = await response.json();
  if (
    typeof answer !== "object" ||
    answer === null ||
    !("archiveUrl" in answer && "fileToExtract" in answer) ||
    typeof answer.archiveUrl !== "string" ||
    typeof answer.fileToExtract !== "string"
  ) {
    throw new Error(`${url.host} did not name an archive`);
  }
  return { archiveUrl: answer.archiveUrl, fileToExtract: answer.fileToExtract };
}

async function fetchTo(
  url: string,
  file: string,
  watch: StallWatch,
  report: Report,
): Promise<void> {
  const response = await request(new URL(url), watch);
  if (response.body === null) throw new Error(`${new URL(url).host} sent nothing`);
  const total = Number(response.headers.get("content-length") ?? 0);
  const output = createWriteStream(file);
  const written = finished(output);
  let received = 0;
  let told = 0;
  const source = Readable.fromWeb(response.body);
  source.on("error", (error) => output.destroy(error));
  source.on("data", (chunk: Uint8Array) => {
    watch.progress();
    received += chunk.length;
    if (total > 0 && received / total >= told + 0.25 && received < total) {
      told = Math.floor((received / total) * 4) / 4;
      report(`downloading Temporal CLI: ${megabytes(received)} of ${megabytes(total)} MB`);
    }
  });
  source.pipe(output);
  await written;
  if (total > 0 && received !== total) throw new Error(`got ${received} of ${total} bytes`);
}

async function request(url: URL, watch: StallWatch): Promise<Response> {
  const response = await fetch(url, { signal: watch.signal });
  watch.progress();
  if (!response.ok) throw new Error(`${url.host} answered ${response.status}`);
  return response;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}

/** `fetch failed` says nothing; its cause does. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
  return `${error.message} (${cause.message || code})`;
}
