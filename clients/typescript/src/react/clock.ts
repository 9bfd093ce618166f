/** What time it is at the server. */
import type { Client } from "../client/client.js";

/** The server's clock, as far as a client can tell. */
class ServerClock {
  #ahead = 0;

  constructor(client: Client) {
    let welcome = client.welcome;
    client.subscribe(() => {
      if (client.welcome && client.welcome !== welcome) {
        welcome = client.welcome;
        this.#ahead = welcome.time - Date.now(); // it has just come
      }
    });
  }

  /** Ms since the epoch; never before `seen`, a time that the server gave. */
  now(seen: number): number {
    this.#ahead = Math.max(this.#ahead, seen - Date.now());
    return this.read();
  }

  readonly read = (): number => Date.now() + this.#ahead;
}

const clocks = new WeakMap<Client, ServerClock>();

/** The clock of a client's server; begin with it before the client connects. */
export function clockOf(client: Client): ServerClock {
  const found = clocks.get(client) ?? new ServerClock(client);
  clocks.set(client, found);
  return found;
}
