import { defineConfig } from "vitest/config";

/** Other work on the machine must not fail a test that waits for something. */
const patient = { poll: { timeout: 10_000 } };

const temporal = {
  expect: patient,
  globalSetup: ["test/support/temporal-server.ts"],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  maxWorkers: 1,
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          expect: patient,
          include: ["test/unit/**/*.test.ts"],
          setupFiles: ["test/support/fail-on-console.ts"],
        },
      },
      {
        test: {
          name: "replay",
          include: ["test/replay/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          ...temporal,
          name: "temporal",
          include: ["test/temporal/**/*.test.ts"],
          env: { LONGHAUL_TEST_CACHE: "100" },
        },
      },
      {
        test: {
          ...temporal,
          name: "temporal-cold",
          // Mostly waits: a cold worker drops tasks that come during an eviction, and the server gives them again.
          maxWorkers: 2,
          include: ["test/temporal/**/*.test.ts"],
          env: { LONGHAUL_TEST_CACHE: "0" },
        },
      },
      {
        test: {
          ...temporal,
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          testTimeout: 180_000,
        },
      },
    ],
  },
});
