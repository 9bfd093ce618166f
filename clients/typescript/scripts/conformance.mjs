/**
 * The client under the conformance kit, from its source: `midstream conform client -- node scripts/conformance.mjs`.
 * What is built stays in node_modules, where Node finds the packages that it imports.
 */
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));
const dir = `${root}node_modules/.conformance/${process.pid}`;
await build({
  cwd: root,
  input: "tests/conformance/driver.ts",
  platform: "node",
  external: ["ws", "@msgpack/msgpack"],
  output: { dir, entryFileNames: "driver.mjs", chunkFileNames: "[name].mjs", format: "esm" },
  logLevel: "warn",
});
const { serve } = await import(pathToFileURL(`${dir}/driver.mjs`).href);
await serve();
