import { defineConfig } from "vitest/config";

const source = (file: string) => new URL("./src/", import.meta.url).pathname + file;

export default defineConfig({
  resolve: {
    // the examples import the package by its name
    alias: [
      { find: /^midstream-client$/, replacement: source("index.ts") },
      { find: /^midstream-client\/(react|ai-sdk|assistant-ui)$/, replacement: source("$1/index.ts") },
      { find: /^midstream-client\/(browser|indexeddb|sessions)$/, replacement: source("$1.ts") },
    ],
  },
  test: {
    include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"],
    // two cores are enough: more only wait for each other
    maxWorkers: 2,
  },
});
