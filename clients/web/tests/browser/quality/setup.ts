/** Before the tests of the page's quality: build the page from what stands in the tree now. */
import type { TestProject } from "vitest/node";
import { missing } from "../chromium.js";
import { buildPage } from "./house.js";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of the built chat page, for `midstream serve --page`. */
    page: string;
  }
}

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (missing) {
    project.provide("page", "");
    return undefined;
  }
  const built = await buildPage();
  project.provide("page", built.folder);
  return built.remove;
}
