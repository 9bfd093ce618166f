/** The connection in components. */
import { useSyncExternalStore } from "react";
import type { Client } from "../client/client.js";
import type { LinkState } from "../client/link.js";
import type { Refusal } from "../client/tokens.js";
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
  /**
   * Why the server did not take the last token: `unauthorized` (there was none, or it is not accepted) or
   * `token_expired`. While another one is being asked for, `state` is `connecting`; where there is none, `closed`.
   */
  readonly refusal: Refusal | undefined;
  /** What the server last said of itself. */
  readonly welcome: WelcomeInfo | undefined;
}

const BLANK: Connection = {
  state: "connecting",
  problem: undefined,
  error: undefined,
  refusal: undefined,
  welcome: undefined,
};
const shown = new WeakMap<Client, Paced<Connection>>();

function connectionOf(client: Client): Paced<Connection> {
  let found = shown.get(client);
  if (!found) {
    found = new Paced(
      (listener) => client.subscribe(listener),
      (before) => {
        const { state, problem, error, refusal, welcome } = client;
        return unlessSame(before, { state, problem, error, refusal, welcome });
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
