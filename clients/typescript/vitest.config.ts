import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    // two cores are enough: more only wait for each other
    maxWorkers: 2,
  },
});
