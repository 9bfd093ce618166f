/** The page's client: it speaks to the server that the page came from. */
import { Client, type ClientOptions } from "midstream-client";
import { browserEnvironment } from "midstream-client/browser";
import { indexedDbStore } from "midstream-client/indexeddb";

/** Where the server is: the page's own origin, or what `VITE_MIDSTREAM_URL` says in development. */
export function serverUrl(origin: string = location.origin): string {
  return import.meta.env.VITE_MIDSTREAM_URL || origin.replace(/^http/, "ws");
}

/** Make the client; what it knows is kept in IndexedDB, one place for each server. `options` are the lab's. */
export function makeClient(options: ClientOptions = {}, url: string = serverUrl()): Client {
  return new Client(url, {
    environment: browserEnvironment(),
    store: indexedDbStore(url),
    onTrouble: (error) => console.info("The page's store does not work, so a reload begins anew:", error),
    ...options,
  });
}
