/** A client's environment in a browser: what becomes of the page and of the network (SPEC 4.7). */
import { type Environment, type News, systemEnvironment } from "./client/environment.js";

/**
 * The page's environment. A page is hidden, frozen and restored without its sockets being told, so a client
 * looks after its connection when the page is seen again, when it thaws, and when the network changes; and
 * stores what it has when the page may be ended.
 */
export function browserEnvironment(page: Window = window): Environment {
  return { ...systemEnvironment(), watch: (listener) => watch(page, listener) };
}

function watch(page: Window, listener: (news: News) => void): () => void {
  const { document } = page;
  const ended = new AbortController();
  const on = (target: EventTarget, name: string, told: (event: Event) => News | undefined) =>
    target.addEventListener(
      name,
      (event) => {
        const news = told(event);
        if (news) {
          listener(news);
        }
      },
      { signal: ended.signal },
    );
  on(document, "visibilitychange", () => (document.visibilityState === "visible" ? "awake" : "asleep"));
  on(document, "freeze", () => "asleep");
  on(document, "resume", () => "awake");
  // an open socket would keep the page out of the back/forward cache, or be cut within it
  on(page, "pagehide", (event) => ((event as PageTransitionEvent).persisted ? "away" : "asleep"));
  on(page, "pageshow", (event) => ((event as PageTransitionEvent).persisted ? "awake" : undefined));
  on(page, "focus", () => "awake");
  // both are hints: what they say of the network is often wrong, so the connection is asked
  on(page, "online", () => "awake");
  on(page, "offline", () => "awake");
  return () => ended.abort();
}
