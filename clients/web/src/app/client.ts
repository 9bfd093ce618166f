/** The page's client: it speaks to the server that the page came from. */
import { Client, type ClientOptions } from "midstream-client";
import { browserEnvironment } from "midstream-client/browser";
import { indexedDbStore } from "midstream-client/indexeddb";
import { identity, placeOf } from "./identity.js";
import { askForToken } from "./token_request.js";

/** Where the server is: the page's own origin, or what `VITE_MIDSTREAM_URL` says in development. */
export function serverUrl(origin: string = location.origin): string {
  return import.meta.env.VITE_MIDSTREAM_URL || origin.replace(/^http/, "ws");
}

/** Where what is known of a reader's chats is kept. */
export const storePlace = (subject: string, url: string = serverUrl()): string =>
  [url, placeOf(subject)].filter(Boolean).join(" ");

/**
 * Make the client of this tab's reader; what it knows is kept in IndexedDB, one place for each server and reader.
 * `options` are the lab's.
 */
export function makeClient(options: ClientOptions = {}, url: string = serverUrl()): Client {
  return new Client(url, {
    environment: browserEnvironment(),
    store: indexedDbStore(storePlace(identity().subject, url)),
    subject: identity().subject,
    token: (refused) => (refused ? askForToken() : identity().token),
    onTrouble: (error) => console.info("The page's store does not work, so a reload begins anew:", error),
    ...options,
  });
}
