/** How long the client is: minified and gzipped, without the one library that it uses. Fails above the limit. */
import { gzipSync } from "node:zlib";
import { build } from "rolldown";

const LIMIT = 12 * 1024;
/** The core is what every program loads; the others are for browsers. */
const ENTRIES = ["index", "browser", "indexeddb"];

const sizes = await Promise.all(
  ENTRIES.map(async (entry) => {
    const { output } = await build({
      input: `src/${entry}.ts`,
      external: ["@msgpack/msgpack"],
      platform: "neutral",
      output: { minify: true, comments: false },
      write: false,
    });
    return gzipSync(output.map((chunk) => ("code" in chunk ? chunk.code : "")).join(""), { level: 9 }).length;
  }),
);
for (const [at, entry] of ENTRIES.entries()) {
  console.log(`${entry}: ${sizes[at]} bytes gzipped`);
}
if (sizes[0] > LIMIT) {
  console.error(`The core has ${sizes[0]} bytes, but may have ${LIMIT}. Make it shorter.`);
  process.exit(1);
}
