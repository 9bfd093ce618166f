/** The connection in components. */
import { useSyncExternalStore } from "react";
import type { Client } from "../client/client.js";
import type { LinkState } from "../client/link.js";
import type { MidstreamError } from "../protocol/errors.js";
import type { WelcomeInfo } from "../protocol/frames.js";
import { Paced, unlessSame } from "./paced.js";
import { useClient } from "./provider.js";

export interface Connection {
  /** `connecting`, `live`, `offline` or `closed`. */
  readonly state: LinkState;
  /** What last ended the connection or an attempt, in words; undefined while there is a connection. */
  readonly problem: string | undefined;
  /** Why the client is closed, where nobody closed it. */
  readonly error: MidstreamError | undefined;
  /** What the server last said of itself. */
  readonly welcome: WelcomeInfo | undefined;
}

const BLANK: Connection = { state: "connecting", problem: undefined, error: undefined, welcome: undefined };
const shown = new WeakMap<Client, Paced<Connection>>();

function connectionOf(client: Client): Paced<Connection> {
  let found = shown.get(client);
  if (!found) {
    found = new Paced(
      (listener) => client.subscribe(listener),
      (before) => {
        const { state, problem, error, welcome } = client;
        return unlessSame(before, { state, problem, error, welcome });
      },
    );
    shown.set(client, found);
  }
  return found;
}

/** The connection to the server, as it is. */
export function useConnection(): Connection {
  const connection = connectionOf(useClient());
  return useSyncExternalStore(connection.subscribe, connection.read, () => BLANK);
}
