/** Before the tests in a browser: build the page of the client's own tests, as Vite builds the real one. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, defaultClientConditions } from "vite";
import type { TestProject } from "vitest/node";
import { missing } from "./chromium.js";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of the built fixture, for `midstream serve --page`. */
    fixture: string;
  }
}

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (missing) {
    console.warn(`The tests in a browser are skipped: ${missing}.`);
    project.provide("fixture", "");
    return undefined;
  }
  const folder = await mkdtemp(join(tmpdir(), "midstream-fixture-"));
  await build({
    configFile: false,
    root: fileURLToPath(new URL("fixture", import.meta.url)),
    logLevel: "warn",
    resolve: { conditions: ["midstream-source", ...defaultClientConditions] },
    build: { outDir: folder, emptyOutDir: true, target: "es2022" },
  });
  project.provide("fixture", folder);
  return () => rm(folder, { recursive: true, force: true });
}
