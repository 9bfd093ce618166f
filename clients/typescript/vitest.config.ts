import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    // the examples import the package by its name
    alias: { "midstream-client": new URL("./src/index.ts", import.meta.url).pathname },
  },
  test: {
    include: ["tests/**/*.test.ts"],
    // two cores are enough: more only wait for each other
    maxWorkers: 2,
  },
});
