/** Starts the demo server as a process of its own, and waits until it answers. */
import { spawn } from "node:child_process";
import { createServer } from "node:net";

const PYTHON = process.env.MIDSTREAM_PYTHON ?? "python3";

/** A port that is free now. */
export const freePort = () =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

/** Start it; `stop` ends it as Ctrl-C does, `kill` as a power cut does. */
export async function startServer({ database, page, speed = 0, port }) {
  const at = port ?? (await freePort());
  const options = {
    agent: "demo",
    database,
    page,
    speed,
    port: at,
    "drain-seconds": 0,
    "log-level": "error",
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(PYTHON, ["-m", "midstream.cli", "serve", ...args], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const url = `http://127.0.0.1:${at}/`;
  await answers(url, child);
  const end = (signal) => {
    child.kill(signal);
    return ended;
  };
  return { url, port: at, stop: () => end("SIGINT"), kill: () => end("SIGKILL") };
}

async function answers(url, child) {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (child.exitCode !== null) {
      throw new Error(`The server ended with ${child.exitCode}. Is midstream installed for ${PYTHON}?`);
    }
    try {
      await fetch(url);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  throw new Error(`The server did not answer at ${url} within 10 s.`);
}
