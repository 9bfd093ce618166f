import react from "@vitejs/plugin-react";
import { defaultClientConditions, defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  // the client is built from its source, with the page
  resolve: { conditions: ["midstream-source", ...defaultClientConditions] },
  build: {
    // in the Python package `midstream.web`, which the server serves it from
    outDir: "midstream/web/page",
    target: "es2022",
  },
});
