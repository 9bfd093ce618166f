/**
 * How long the client is, as a program loads it: minified and gzipped, without the libraries that it uses.
 * Fails above the limit. What a program does not name, and what is loaded later, is not in the first number.
 */
import { gzipSync } from "node:zlib";
import { build } from "rolldown";

const LIMIT = 12.5 * 1024;
const NAMED = {
  client: 'export { Client } from "./src/index.ts";',
  everything: 'export * from "./src/index.ts";',
  browser: 'export * from "./src/browser.ts";',
  indexeddb: 'export * from "./src/indexeddb.ts";',
  "with sessions": 'export { Client } from "./src/index.ts"; export * from "./src/sessions.ts";',
  "with React": 'export { Client } from "./src/index.ts"; export * from "./src/react/index.ts";',
  "with the AI SDK's adapter":
    'export { Client } from "./src/index.ts"; export * from "./src/ai-sdk/index.ts";',
  "with assistant-ui's":
    'export { Client } from "./src/index.ts"; export * from "./src/assistant-ui/index.ts";',
};

const sizes = {};
for (const [name, source] of Object.entries(NAMED)) {
  const { output } = await build({
    input: "entry",
    plugins: [
      {
        name: "entry",
        resolveId: (id) => (id === "entry" ? `${process.cwd()}/entry.js` : null),
        load: (id) => (id.endsWith("/entry.js") ? source : null),
      },
    ],
    external: ["@msgpack/msgpack", "react", "react/jsx-runtime", "ai", "@assistant-ui/react"],
    platform: "neutral",
    output: { minify: true, comments: false },
    write: false,
  });
  const [entry] = output;
  // what the first chunk imports is loaded with it
  const isFirst = (chunk) => chunk === entry || entry.imports.includes(chunk.fileName);
  const code = (chunks) => gzipSync(chunks.map((chunk) => chunk.code).join(""), { level: 9 }).length;
  const first = code(output.filter(isFirst));
  const later = output.filter((chunk) => !isFirst(chunk)).map((chunk) => code([chunk]));
  sizes[name] = first;
  console.log(
    `${name}: ${first} bytes gzipped${later.length ? `, and ${later.join(" + ")} when needed` : ""}`,
  );
}
if (sizes.client > LIMIT) {
  console.error(`The client has ${sizes.client} bytes, but may have ${LIMIT}. Make it shorter.`);
  process.exitCode = 1;
}
