import { existsSync } from "node:fs";
import { chromium, type BrowserContext } from "playwright-core";

/** Debian's place for it. */
const usual = "/usr/bin/chromium";

/** A real Chromium with a profile of its own. Throws when there is none: a test that needs it must not pass without. */
export function openBrowser(
  profile: string,
  viewport: { readonly width: number; readonly height: number },
): Promise<BrowserContext> {
  const executablePath = process.env["CHROMIUM_PATH"] ?? usual;
  if (!existsSync(executablePath)) {
    throw new Error(
      `this test needs Chromium, and ${executablePath} does not exist: run \`apt-get install -y chromium\`, or set CHROMIUM_PATH`,
    );
  }
  return chromium.launchPersistentContext(profile, {
    executablePath,
    viewport,
    args: ["--no-sandbox", "--disable-background-networking", "--disable-gpu"],
  });
}
