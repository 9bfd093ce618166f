/** The server's clock in components. */
import { clockOf } from "./clock.js";
import { useClient } from "./provider.js";

/**
 * Reads the server's clock, in ms since the epoch, as far as the client can tell: to say how long ago something
 * was, or how long an approval has (`expires_at`). The same function for a client.
 */
export const useServerClock = (): (() => number) => clockOf(useClient()).read;
