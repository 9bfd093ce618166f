import { defineConfig } from "vitest/config";

export default defineConfig({
  ssr: { resolve: { conditions: ["midstream-source"] } },
  resolve: { conditions: ["midstream-source"] },
  test: {
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: "unit", include: ["tests/unit/**/*.test.{ts,tsx}"] } },
      {
        extends: true,
        test: {
          name: "browser",
          include: ["tests/browser/**/*.test.ts"],
          globalSetup: ["tests/browser/setup.ts", "tests/browser/quality/setup.ts"],
          // real browsers, servers and disks, on two cores that others use too
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // one machine in a hurry must not stop a landing; a test that needed it says so in the output
          retry: process.env.CI ? 1 : 0,
        },
      },
    ],
  },
});
