/** Sessions in React components, over `useSyncExternalStore`. */
export { type Connection, useConnection } from "./connection.js";
export { type TurnElapsed, useTurnElapsed } from "./elapsed.js";
export { MidstreamProvider, useClient } from "./provider.js";
export { useServerClock } from "./server_clock.js";
export { useSession } from "./session.js";
export { type ListSnapshot, type Sessions, useSessions } from "./sessions.js";
export type { OpenSession } from "./shared_session.js";
export type { Asked, SessionSnapshot } from "./snapshot.js";
export { useSessionValue } from "./value.js";
