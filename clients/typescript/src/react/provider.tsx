/** The client that components use. */
import { createContext, type ReactNode, useContext, useEffect } from "react";
import type { Client } from "../client/client.js";
import { clockOf } from "./clock.js";

const ClientContext = createContext<Client | undefined>(undefined);

/**
 * Give a client to the components below, and have it connect. It is not closed when this goes: whoever made
 * the client closes it.
 */
export function MidstreamProvider(props: { readonly client: Client; readonly children?: ReactNode }) {
  const { client, children } = props;
  useEffect(() => {
    clockOf(client); // it is set by the welcome
    if (client.state !== "closed") {
      client.connect();
    }
  }, [client]);
  return <ClientContext.Provider value={client}>{children}</ClientContext.Provider>;
}

/** The client of the `MidstreamProvider` above. */
export function useClient(): Client {
  const client = useContext(ClientContext);
  if (!client) {
    throw new Error("No midstream client here: put <MidstreamProvider client={client}> around this.");
  }
  return client;
}
