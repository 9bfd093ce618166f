/** Which chat the address names: `/` is a new one, `/s/<id>` is that one. */
import { useSyncExternalStore } from "react";

export type Route = { readonly kind: "new" } | { readonly kind: "chat"; readonly sessionId: string };

const NEW: Route = { kind: "new" };

/** Read a path. One that names nothing is a new chat. */
export function parsePath(path: string): Route {
  const [, written] = /^\/s\/([^/]+)\/?$/.exec(path) ?? [];
  if (written === undefined) {
    return NEW;
  }
  try {
    return { kind: "chat", sessionId: decodeURIComponent(written) };
  } catch {
    return NEW; // a broken escape
  }
}

export const chatPath = (sessionId: string): string => `/s/${encodeURIComponent(sessionId)}`;

const listeners = new Set<() => void>();
let path: string | undefined;
let route: Route = NEW;

/** Go to a path, and keep what the address asks for beside it (`?lab`). */
export function navigate(to: string, how: "push" | "replace" = "push"): void {
  if (to !== location.pathname) {
    history[how === "push" ? "pushState" : "replaceState"](null, "", to + location.search);
  }
  for (const listener of listeners) {
    listener();
  }
}

export const currentRoute = (): Route => {
  if (location.pathname !== path) {
    path = location.pathname;
    route = parsePath(path);
  }
  return route;
};

/** Where the page is; re-renders with `navigate`, back and forward. */
export function useRoute(): Route {
  return useSyncExternalStore(subscribe, currentRoute, () => NEW);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    removeEventListener("popstate", listener);
  };
}
