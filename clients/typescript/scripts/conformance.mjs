/**
 * The client under the conformance kit, from its source: `midstream conform client -- node scripts/conformance.mjs`.
 * It is built into node_modules, where Node finds the packages that it imports, and removed at the end.
 */
import { rmSync } from "node:fs";
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
process.on("exit", () => rmSync(dir, { recursive: true }));
const { serve } = await import(pathToFileURL(`${dir}/driver.mjs`).href);
await serve();
process.exit();
