import { defineConfig } from "vitest/config";

export default defineConfig({
  ssr: { resolve: { conditions: ["midstream-source"] } },
  resolve: { conditions: ["midstream-source"] },
  test: {
    include: ["tests/**/*.test.{ts,tsx}"],
    maxWorkers: 2,
  },
});
