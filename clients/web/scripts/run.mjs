/** Runs a TypeScript file's `main` with arguments: node scripts/run.mjs FILE [argument ...]; any Node can. */
import { runnerImport } from "vite";

const [file, ...args] = process.argv.slice(2);
const { module } = await runnerImport(file, { configFile: false, logLevel: "warn" });
try {
  process.exitCode = (await module.main(args)) ? 1 : 0;
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
