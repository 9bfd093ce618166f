/** A real server in a process of its own, on a database in a folder that is removed at the end. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../../../..");
/** A Python with the package `midstream`, command line included. */
export const PYTHON = process.env.MIDSTREAM_PYTHON ?? join(ROOT, ".venv", "bin", "python");

export const hasServer = existsSync(PYTHON);

/** A port that nothing listens on now: a server that is started again must be found where it was. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address ? address.port : 0;
}

export class ServerProcess {
  readonly url: string;
  /** Where its page is. */
  readonly pageUrl: string;
  private child: ChildProcess | undefined;

  private constructor(
    private readonly folder: string,
    readonly port: number,
    private readonly speed: number,
    private readonly flags: readonly string[],
    private readonly environment: Readonly<Record<string, string>>,
  ) {
    this.url = `ws://127.0.0.1:${port}`;
    this.pageUrl = `http://127.0.0.1:${port}/`;
  }

  /**
   * `speed` is how fast the demo agent streams; 0 is without pauses. `flags` are more of `midstream serve`,
   * whose last word counts; `environment` is added to the process's own.
   */
  static async start(
    speed: number,
    flags: readonly string[] = [],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<ServerProcess> {
    const folder = await mkdtemp(join(tmpdir(), "midstream-client-"));
    const server = new ServerProcess(folder, await freePort(), speed, flags, environment);
    await server.begin();
    return server;
  }

  /** The file of its database, which is nobody else's while it runs. */
  get database(): string {
    return join(this.folder, "chat.db");
  }

  /** Start it, for the first time or again, and wait until it listens. */
  async begin(): Promise<void> {
    const given = [
      "--agent",
      "demo",
      "--database",
      this.database,
      "--speed",
      String(this.speed),
      ...this.flags,
    ];
    const child = spawn(PYTHON, ["-m", "midstream.cli", "serve", "--port", String(this.port), ...given], {
      cwd: this.folder,
      env: { ...process.env, ...this.environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    const said: string[] = [];
    child.stderr?.on("data", (data) => said.push(String(data)));
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said.join("")}`)));
      if (child.stdout) {
        createInterface(child.stdout).on("line", (line) => line.startsWith("Listening on") && resolve());
      }
    });
  }

  /** `kill -9`, and wait until it is gone. */
  async kill(): Promise<void> {
    const { child } = this;
    if (child && child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await gone;
    }
  }

  async remove(): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}
