import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { defaultLimits } from "../../src/contracts/config.js";
import { acquireServer, type ServerHandle } from "../../src/server/index.js";
import { searchAttributes } from "../../src/contracts/names.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { openBrowser } from "../support/browser.js";
import { startCliInTest, userEnvironment } from "../support/cli-process.js";

/** Scenario, workspace, data directory and browser profile. */
let root: string;
let server: ServerHandle;
let client: LonghaulClient;
const title = "Check the notes of May";

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "longhaul-console-"));
  mkdirSync(join(root, "notes"));
  writeFileSync(join(root, "check.yaml"), scenario);
  const home = join(root, "home");
  server = await acquireServer({ home, env: userEnvironment({}), attributes: searchAttributes });
  client = await LonghaulClient.connect({
    connection: server.connection,
    store: await openDirectoryStore(join(home, "store")),
    attributes: ["LonghaulState", "LonghaulParent", "LonghaulHost"],
  });
});
afterAll(async () => {
  await client.close();
  await server.release();
  rmSync(root, { recursive: true, force: true });
});

/** A plan, then a command that runs until the test lets it end. */
const scenario = `name: check
turns:
  - steps:
      - text: First a plan.
        calls:
          - tool: todo_write
            args:
              todos:
                - { content: Read the notes, status: completed }
                - { content: Run the long check, status: in_progress }
                - { content: Write the summary, status: pending }
      - text: Now the check.
        calls:
          - { tool: bash, args: { command: "until [ -e go ]; do sleep 0.2; done", description: Run the long check } }
      - { text: All is well. }
`;

async function startSession(): Promise<SessionClient> {
  const session = await client.createSession({
    title,
    host: "desk",
    config: {
      // Relative to the worker's directory, and short in what the page shows.
      request: { provider: "scripted", model: "check.yaml" },
      allowParallelInProgress: false,
      worldTools: true,
      cwd: join(root, "notes"),
      outsideWorkspace: false,
      deny: [],
      ask: [],
      limits: defaultLimits,
    },
  });
  await session.send("Check the notes of May and write a summary.");
  return session;
}

test("Temporal UI finds a session by its state, and shows its title, what it is doing with its todo list, and its timeline; then that it is idle", async () => {
  const worker = startCliInTest(["worker", "--host-id", "desk"], {
    env: userEnvironment({ LONGHAUL_HOME: join(root, "home") }),
    cwd: root,
  });
  await worker.shows("worker ready");
  const session = await startSession();
  const browser = await openBrowser(join(root, "profile"), { width: 1280, height: 1080 });
  try {
    const page = browser.pages()[0] ?? (await browser.newPage());
    page.setDefaultTimeout(30_000);

    await openList(page, 'LonghaulState="running"');
    await page.getByRole("link", { name: session.id }).click();

    // One bar an activity, labelled with its summary; one mark a message.
    const bar = (label: RegExp | string) => page.getByText(label).filter({ visible: true }).first();
    await bar(/callModel • scripted\/check\.yaml · turn 1, step 2/).waitFor();
    await bar(/tool\.run • bash .*Run the long check/).waitFor();
    await bar("session.send").waitFor();
    await keep(page, "console-timeline");

    await page.getByRole("tab", { name: "User Metadata" }).click();
    const [summary, details, current] = await metadata(page);
    expect(summary).toBe(title);
    expect(details).toContain("host: desk");
    expect(current?.split("\n").filter((line) => line !== "")).toEqual([
      "running · running bash",
      "Turn 1, step 2",
      "Host: desk",
      "Todo",
      "☑ Read the notes",
      "▸ Run the long check",
      "☐ Write the summary",
    ]);
    await keep(page, "console-details");

    await page.getByRole("tab", { name: "Pending Activities" }).click();
    await page.getByText('"tool": "bash"').waitFor();

    writeFileSync(join(root, "notes", "go"), "");
    await session.waitIdle();
    await openList(page, 'LonghaulState="idle"');
    await page.getByRole("link", { name: session.id }).click();
    await page.getByRole("tab", { name: "User Metadata" }).click();
    const after = (await metadata(page))[2];
    expect(after).toContain("idle");
    expect(after).toContain("Turn 1 ended: completed");
  } finally {
    await browser.close();
  }
  await session.close();
});

/** Visibility follows the session by a moment, and the list does not read again by itself. */
async function openList(page: Page, query: string): Promise<void> {
  const url = `${server.uiUrl}/namespaces/default/workflows?query=${encodeURIComponent(query)}`;
  await expect
    .poll(
      async () => {
        await page.goto(url);
        await page.getByText(/^\d+ Workflows?$/).waitFor();
        return page.getByRole("link", { name: /^s-/ }).count();
      },
      { timeout: 60_000 },
    )
    .toBe(1);
}

/** The texts of Summary, Details and Current Details, which the page shows as documents of their own. */
async function metadata(page: Page): Promise<string[]> {
  const shown = page.locator("iframe");
  await expect.poll(() => shown.count(), { timeout: 30_000 }).toBe(3);
  const frames = await shown.all();
  return Promise.all(
    frames.map(async (frame) => (await frame.contentFrame().locator("main").innerText()).trim()),
  );
}

/** Only for docs/console.md: LONGHAUL_SCREENSHOTS names the directory. */
async function keep(page: Page, name: string): Promise<void> {
  const directory = process.env["LONGHAUL_SCREENSHOTS"];
  if (directory !== undefined) await page.screenshot({ path: join(directory, `${name}.png`) });
}
