//#region src/protocol/errors.ts
/**
* Something was refused, or could not be done. `code` is stable and for programs: those of SPEC 11.1, and
* the client's own (`connection_lost`, `timed_out`, `session_closed`, ...). `message` is for people.
*/
var MidstreamError = class extends Error {
	/** Whether the same call may succeed later as it is. */
	retryable;
	constructor(code, message, details = {}, retryable = false) {
		super(message);
		this.code = code;
		this.details = details;
		this.name = "MidstreamError";
		this.retryable = retryable;
	}
};
/** The form of something is wrong; `field` is the path to it. */
const invalid = (field, problem) => new MidstreamError("invalid", `${field || "The value"} ${problem}.`, { field });
/** What came is no frame at all. */
const malformed = (problem) => new MidstreamError("malformed", `This is no frame: ${problem}.`);
/** A limit of SPEC 11.2 was passed. */
const limitExceeded = (limit, maximum, actual) => new MidstreamError("limit_exceeded", `${limit} is at most ${maximum}, but this has ${actual}.`, {
	limit,
	maximum,
	actual
});
//#endregion
//#region src/client/environment.ts
/** Everything that a client asks of where it runs: time, chance, sockets, and news of the page (SPEC 4.7). */
/** What Node, React Native and browsers have in common. `webSocket` is for Node before 22, say that of `ws`. */
function systemEnvironment(webSocket) {
	const here = globalThis;
	return {
		now: () => here.performance?.now() ?? Date.now(),
		wallMs: () => Date.now(),
		random: () => {
			const drawn = here.crypto?.getRandomValues?.(new Uint32Array(1))[0];
			return drawn === void 0 ? Math.random() : drawn / 2 ** 32;
		},
		later: (ms, callback) => {
			const timer = here.setTimeout(callback, ms);
			return () => here.clearTimeout(timer);
		},
		socket: (url, subprotocols) => {
			const Maker = webSocket ?? here.WebSocket;
			if (!Maker) throw new MidstreamError("unsupported", "There are no WebSockets here. Give the client one: systemEnvironment(WebSocket), of the package ws.");
			return new Maker(url, subprotocols);
		}
	};
}
//#endregion
export { malformed as a, limitExceeded as i, MidstreamError as n, invalid as r, systemEnvironment as t };
