/** The README's example is a file, and it runs. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { hello } from "../../examples/hello.js";
import { hasServer, ServerProcess } from "./server.js";

test("the README shows the example as it is", () => {
  const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
  expect(read("README.md")).toContain(read("examples/hello.ts").trim());
});

test.skipIf(!hasServer)(
  "the example gets an answer, and its copy is right",
  { timeout: 60_000 },
  async () => {
    const server = await ServerProcess.start(0);
    try {
      expect(await hello(server.url)).toMatch(/^completed, equal to the server: true, [1-9]\d* characters/);
    } finally {
      await server.remove();
    }
  },
);
