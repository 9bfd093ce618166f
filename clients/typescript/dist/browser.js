import { t as systemEnvironment } from "./environment-CybDSeRt.js";
//#region src/browser.ts
/** A client's environment in a browser: what becomes of the page and of the network (SPEC 4.7). */
/**
* The page's environment. A page is hidden, frozen and restored without its sockets being told, so a client
* looks after its connection when the page is seen again, when it thaws, and when the network changes; and
* stores what it has when the page may be ended.
*/
function browserEnvironment(page = window) {
	return {
		...systemEnvironment(),
		watch: (listener) => watch(page, listener)
	};
}
function watch(page, listener) {
	const { document } = page;
	const ended = new AbortController();
	const on = (target, name, told) => target.addEventListener(name, (event) => {
		const news = told(event);
		if (news) listener(news);
	}, { signal: ended.signal });
	on(document, "visibilitychange", () => document.visibilityState === "visible" ? "awake" : "asleep");
	on(document, "freeze", () => "asleep");
	on(document, "resume", () => "awake");
	on(page, "pagehide", (event) => event.persisted ? "away" : "asleep");
	on(page, "pageshow", (event) => event.persisted ? "awake" : void 0);
	on(page, "focus", () => "awake");
	on(page, "online", () => "awake");
	on(page, "offline", () => "awake");
	return () => ended.abort();
}
//#endregion
export { browserEnvironment };
