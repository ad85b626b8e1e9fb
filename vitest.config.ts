import { defineConfig } from "vitest/config";

/** Other work on the machine must not fail a test that waits for something. */
const patient = { poll: { timeout: 60_000 } };

const temporal = {
  expect: patient,
  globalSetup: ["test/support/temporal-server.ts"],
  testTimeout: 300_000,
  hookTimeout: 300_000,
  maxWorkers: 1,
};
/** Their tests mostly wait: for timers, for hosts, and without a cache for tasks that the worker drops. */
const waiting = { ...temporal, maxWorkers: 2 };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          expect: patient,
          testTimeout: 120_000,
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
          ...waiting,
          name: "temporal",
          include: ["test/temporal/**/*.test.ts"],
          env: { LONGHAUL_TEST_CACHE: "100" },
        },
      },
      {
        test: {
          ...waiting,
          name: "temporal-cold",
          include: ["test/temporal/**/*.test.ts"],
          env: { LONGHAUL_TEST_CACHE: "0" },
        },
      },
      {
        test: {
          ...temporal,
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
        },
      },
    ],
  },
});
