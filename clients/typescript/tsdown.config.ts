import { defineConfig } from "tsdown";

export default defineConfig({
  entry: {
    index: "src/index.ts",
    browser: "src/browser.ts",
    indexeddb: "src/indexeddb.ts",
    sessions: "src/sessions.ts",
    react: "src/react/index.ts",
    "ai-sdk": "src/ai-sdk/index.ts",
    "assistant-ui": "src/assistant-ui/index.ts",
  },
  format: "esm",
  platform: "neutral",
  target: "es2022",
  tsconfig: "tsconfig.browser.json",
  dts: true,
  fixedExtension: false,
});
