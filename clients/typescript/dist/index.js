import { a as malformed, i as limitExceeded, n as MidstreamError, r as invalid, t as systemEnvironment } from "./environment-CybDSeRt.js";
//#region src/client/errors.ts
/** What only a client can know: the link is gone, nobody answered (the codes are those of the Python client). */
const clientError = (code, message, details) => new MidstreamError(code, message, details);
/** The connection went, and the call cannot be sent again by itself without harm. */
const connectionLost = (method, sent) => clientError("connection_lost", sent ? `The connection was lost before ${method} was answered; it may have been done. Look, and then decide.` : `There is no connection, so ${method} was not sent. Repeat it when the session is live.`, {
	method,
	sent
});
/** What was waited for did not happen in time. */
const timedOut = (what, ms, problem) => clientError("timed_out", `${what} did not happen within ${ms} ms.${problem ? ` Last problem: ${problem}.` : ""} The client goes on trying.`, {
	ms,
	problem
});
/** The session is closed for this client; `details.reason` says why. */
const sessionClosed = (id, reason) => clientError("session_closed", `Session ${id} is closed here (${reason}). Ask the client for it again.`, {
	id,
	reason
});
const clientClosed = () => clientError("client_closed", "The client is closed. Make a new Client to connect again.");
/** Too many prompts wait for the connection; this one was not taken. */
const outboxFull = (id, limit) => clientError("outbox_full", `${limit} prompts of session ${id} wait to be sent, which is the limit.`, {
	id,
	limit
});
/** What answers at the URL does not speak this protocol, or not this version of it. */
const incompatibleServer = (problem) => clientError("incompatible_server", `${problem} Check the URL and the server's version.`);
/** The server closed the connection with a code that says not to come back (4500 to 4999). */
const connectionRejected = (close_code, reason) => clientError("connection_rejected", `The server closed the connection for good (${close_code} ${reason}).`, {
	close_code,
	reason
});
/** The prompt was cancelled before a turn took it. */
const inputCancelled = (id) => clientError("input_cancelled", `Prompt ${id} was cancelled before a turn took it.`, { id });
/** A fault of the client itself, which ends it. */
const clientFailed = (cause) => {
	const error = clientError("client", `The client failed and is closed: ${cause}. Please report it.`);
	error.cause = cause;
	return error;
};
//#endregion
//#region src/protocol/limits.ts
const DEFAULT_LIMITS = {
	frame_bytes: 1048576,
	chunk_bytes: 65536,
	nesting: 64,
	calls_in_flight: 64,
	page_messages: 200
};
//#endregion
//#region src/protocol/schema.ts
/**
* Readers: they take what came over the wire and return it as a type, or say which field is wrong.
* What they return has the known fields only, so that unknown ones are in no digest (SPEC 3.2, 5.6).
*/
/** Return the path of a field of what is at `path`. */
const join = (path, name) => path ? `${path}.${name}` : name;
const must = (what, value, path) => {
	throw invalid(path, value === void 0 ? "is missing" : `must be ${what}`);
};
const text = (value, path) => typeof value === "string" ? value : must("a string", value, path);
const flag = (value, path) => typeof value === "boolean" ? value : must("a boolean", value, path);
/** An integer that is not negative, and below 2^53. */
const count = (value, path) => Number.isSafeInteger(value) && value >= 0 ? value : must("a count", value, path);
/** Any value at all; a server's values are not looked into. */
const value = (given, path) => given === void 0 ? must("a value", given, path) : given;
const isMap = (given) => typeof given === "object" && given !== null && !Array.isArray(given);
const map = (given, path) => isMap(given) ? given : must("a map", given, path);
const nullable = (reader) => (given, path) => given === null ? null : reader(given, path);
const maybe = (reader) => (given, path) => given === void 0 ? void 0 : reader(given, path);
/** Like `maybe`; the usual value is left out, so that writing it or not is the same. */
const unlessUsual = (reader, isUsual) => (given, path) => {
	const read = maybe(reader)(given, path);
	return read === void 0 || isUsual(read) ? void 0 : read;
};
const word = (...words) => (given, path) => words.includes(given) ? given : must(`one of ${words.join(", ")}`, given, path);
const list = (item) => (given, path) => Array.isArray(given) ? given.map((one, at) => item(one, `${path}[${at}]`)) : must("a list", given, path);
const pair = (first, second) => (given, path) => Array.isArray(given) ? [first(given[0], `${path}[0]`), second(given[1], `${path}[1]`)] : must("a pair", given, path);
const struct = (fields) => {
	const all = Object.entries(fields);
	return (given, path) => {
		if (!isMap(given)) return must("a map", given, path);
		const made = {};
		for (const [name, reader] of all) {
			const read = reader(given[name], join(path, name));
			if (read !== void 0) made[name] = read;
		}
		return made;
	};
};
/** One of several structs, which its field `tag` names. */
const union = (tag, kinds) => {
	const readers = /* @__PURE__ */ new Map();
	for (const [name, fields] of Object.entries(kinds)) readers.set(name, struct({
		[tag]: text,
		...fields
	}));
	return (given, path) => {
		const name = isMap(given) ? given[tag] : void 0;
		return (readers.get(name) ?? must("a known type", name, join(path, tag)))(given, path);
	};
};
const providers = map;
const base = {
	part_id: ((given, path) => given === void 0 ? "" : text(given, path)),
	sequence: ((given, path) => given === void 0 ? 0 : count(given, path)),
	step_id: maybe(text)
};
const streamState = word("streaming", "done");
const response = union("kind", {
	approval: {
		decision: word("approved", "denied"),
		reason: maybe(text)
	},
	question: { answers: list(struct({
		question_id: text,
		value: ((given, path) => (Array.isArray(given) ? list(text) : text)(given, path))
	})) }
});
const question = struct({
	question_id: text,
	question: text,
	options: maybe(list(struct({
		value: text,
		label: maybe(text),
		description: maybe(text)
	}))),
	multiple: maybe(flag)
});
const part = union("type", {
	text: {
		...base,
		text,
		state: maybe(streamState),
		provider_metadata: maybe(providers)
	},
	reasoning: {
		...base,
		text,
		state: streamState,
		provider_metadata: maybe(providers)
	},
	context: {
		...base,
		tag: text,
		context: text
	},
	file: {
		...base,
		url: text,
		media_type: text,
		filename: maybe(text),
		provider_metadata: maybe(providers)
	},
	data: {
		...base,
		data_type: text,
		data: value,
		data_id: maybe(text)
	},
	source: {
		...base,
		source_type: word("url", "document"),
		source_id: text,
		url: maybe(text),
		title: maybe(text),
		media_type: maybe(text),
		filename: maybe(text),
		provider_metadata: maybe(providers)
	},
	tool: {
		...base,
		tool_call_id: text,
		tool_name: text,
		state: word("input-streaming", "ready", "waiting-user", "running", "completed", "failed"),
		input_text: maybe(text),
		input: maybe(value),
		output: maybe(value),
		error: maybe(text),
		title: maybe(text),
		tool_metadata: maybe(map),
		dynamic: maybe(flag),
		raw_input: maybe(text),
		preliminary: maybe(flag),
		call_provider_metadata: maybe(providers),
		result_provider_metadata: maybe(providers),
		provider_executed: maybe(flag)
	},
	interaction: {
		...base,
		interaction_id: text,
		interaction_type: word("approval", "question"),
		status: word("pending", "resolved", "expired", "cancelled"),
		request: struct({
			title: text,
			description: maybe(text),
			questions: maybe(list(question)),
			expires_at: maybe(count)
		}),
		response: maybe(response),
		resolved_at: maybe(count),
		resolved_by: maybe(text),
		cancel_reason: maybe(word("turn_stopped", "session_disposed", "runtime_interrupted")),
		tool_call_id: maybe(text),
		approval_mode: maybe(word("always-allow"))
	},
	action: {
		...base,
		action_id: text,
		action_type: text,
		state: word("running", "completed", "failed"),
		title: text,
		description: maybe(text),
		data: maybe(map)
	},
	error: {
		...base,
		scope: word("session", "turn"),
		code: text,
		message: text,
		recoverable: flag
	},
	"step-start": base
});
const origin = struct({
	session_id: text,
	message_id: text,
	turn_id: maybe(text)
});
/** The fields that a message has of its own, beside `sequence`, `revision` and its parts. */
const ownFields = {
	message_id: text,
	session_id: text,
	turn_id: maybe(text),
	role: word("user", "agent"),
	visibility: word("visible", "internal"),
	created_at: count,
	updated_at: count,
	origin: maybe(origin),
	state: maybe(streamState)
};
const message = struct({
	...ownFields,
	sequence: count,
	revision: count,
	parts: list(part)
});
const turn = struct({
	turn_id: text,
	revision: count,
	state: word("running", "completed", "failed", "stopped"),
	phase: word("starting", "waiting-model", "streaming", "running-tool", "waiting-user"),
	phase_since: count,
	started_at: count,
	finished_at: maybe(count),
	error: maybe(struct({
		code: text,
		message: text
	}))
});
const session = struct({
	session_id: text,
	revision: count,
	title: maybe(text),
	metadata: unlessUsual(map, (given) => Object.keys(given).length === 0),
	created_at: count,
	updated_at: count,
	archived_at: maybe(count),
	first_sequence: unlessUsual(count, (given) => given === 1),
	message_count: count,
	running_turn_id: maybe(text),
	queue: unlessUsual(list(text), (given) => given.length === 0),
	pending_interactions: unlessUsual(count, (given) => given === 0),
	approval_mode: unlessUsual(word("ask", "always-allow"), (given) => given === "ask"),
	approval_mode_by: maybe(text),
	summarized_through: unlessUsual(count, (given) => given === 0)
});
//#endregion
//#region src/protocol/frames.ts
/** The frames that a client gets and sends (SPEC 3). On the wire they are arrays; here they have names. */
const { message_id, session_id, role, visibility, created_at, updated_at, ...optional } = ownFields;
const content = {
	messages: maybe(list(struct({
		...optional,
		message_id: maybe(message_id),
		session_id: maybe(session_id),
		role: maybe(role),
		visibility: maybe(visibility),
		created_at: maybe(created_at),
		updated_at,
		sequence: count,
		revision: maybe(count),
		part_count: count,
		parts: maybe(list(part)),
		appends: maybe(list(pair(count, text))),
		ended: maybe(list(count))
	}))),
	turns: maybe(list(turn)),
	session: maybe(session)
};
const syncPayload = struct({
	...content,
	mode: word("replay", "catchup", "reset"),
	from: maybe(count),
	epoch: text,
	version: count,
	durable: maybe(count),
	next_before_sequence: maybe(count),
	has_more: maybe(flag)
});
const piece = (given) => {
	if ((typeof given === "string" || given instanceof Uint8Array) && given.length) return given;
	throw malformed("the piece of a chunk is empty or of the wrong type");
};
/** The elements of each frame after its tag, in order. */
const FRAMES = {
	welcome: { info: struct({
		connection_id: text,
		server: text,
		time: count,
		heartbeat_ms: count,
		limits: (given, path) => ({
			...DEFAULT_LIMITS,
			...map(given, path)
		}),
		subject: text,
		scopes: list(text)
	}) },
	result: {
		id: count,
		result: map
	},
	error: {
		id: nullable(count),
		error: struct({
			code: text,
			message: text,
			retryable: flag,
			details: maybe(map)
		})
	},
	ping: { nonce: count },
	pong: {
		nonce: count,
		time: count
	},
	d: {
		channel: count,
		version: count,
		elapsed: count,
		message_sequence: count,
		part_sequence: count,
		text
	},
	change: {
		channel: count,
		version: count,
		durable: flag,
		content: struct(content)
	},
	skip: {
		channel: count,
		from_version: count,
		version: count
	},
	sync: {
		channel: count,
		payload: syncPayload
	},
	mark: {
		channel: count,
		version: count
	},
	closed: {
		channel: count,
		code: text,
		retryable: flag
	},
	signal: {
		channel: count,
		sender: text,
		name: text,
		data: value
	},
	goaway: {
		reason: text,
		reconnect_after_ms: count
	},
	chunk: {
		n: count,
		last: flag,
		piece
	}
};
const READERS = new Map(Object.entries(FRAMES).map(([tag, fields]) => [tag, Object.entries(fields)]));
/**
* Read a decoded frame of a server; undefined for a tag that is not known here, which is to be ignored.
*
* @throws MidstreamError `malformed`: it is no frame. `invalid`: an element is wrong; the connection ends.
*/
function readServerFrame(frame) {
	if (!Array.isArray(frame) || typeof frame[0] !== "string") throw malformed("it is not an array with a string as its first element");
	const fields = READERS.get(frame[0]);
	if (!fields) return;
	const made = { tag: frame[0] };
	for (const [at, [name, reader]] of fields.entries()) {
		const element = frame[at + 1];
		made[name] = element === void 0 ? wrong(name, frame[0]) : reader(element, name);
	}
	return made;
}
function wrong(name, tag) {
	throw tag === "chunk" ? malformed("a chunk is cut short") : invalid(name, "is missing");
}
//#endregion
//#region src/protocol/calls.ts
/** The calls that a client makes, and how their results are read (SPEC 7). */
const interaction = (given, path) => {
	const read = part(given, path);
	if (read.type !== "interaction") throw invalid(path, "must be an interaction");
	return read;
};
const promptResult = struct({
	state: word("started", "queued", "absorbed", "cancelled"),
	message_id: text,
	turn_id: maybe(text),
	position: maybe(count)
});
const sessionResult = struct({
	session,
	epoch: text,
	version: count
});
const empty = struct({});
const digest = (given, path) => {
	const [sequence, revision, digits] = Array.isArray(given) ? given : [];
	return [
		count(sequence, path),
		count(revision, path),
		text(digits, path)
	];
};
/** How the result of each method is read. */
const RESULTS = {
	subscribe: struct({
		channel: count,
		sync: syncPayload
	}),
	unsubscribe: empty,
	messages: struct({
		items: list(message),
		total: count,
		start_sequence: maybe(count),
		end_sequence: maybe(count),
		next_before_sequence: maybe(count),
		has_more: flag,
		include_internal: flag,
		before_sequence: maybe(count),
		turns: list(turn),
		epoch: text,
		version: count
	}),
	turn: struct({ turn: nullable(turn) }),
	prompt: promptResult,
	stop: struct({
		stopped: flag,
		turn_id: maybe(text),
		cancelled: list(text),
		reason: word("stopped", "idle")
	}),
	respond: struct({ interaction }),
	interactions: struct({ items: list(struct({
		message_id: text,
		message_sequence: count,
		turn_id: maybe(text),
		interaction
	})) }),
	cancel_input: promptResult,
	verify: struct({
		version: count,
		epoch: text,
		digests: list(digest)
	}),
	signal: empty,
	"sessions.create": sessionResult,
	"sessions.get": sessionResult,
	"sessions.list": struct({
		items: list(session),
		next_after: maybe(text)
	}),
	"sessions.update": sessionResult,
	"sessions.clear": sessionResult,
	"sessions.archive": sessionResult,
	"sessions.approval_mode": sessionResult,
	"sessions.fork": sessionResult,
	"sessions.delete": empty
};
//#endregion
//#region src/protocol/bytes.ts
/** UTF-8 without TextEncoder, which not every engine has. */
/** Return the UTF-8 bytes of a text; a lone half of a code point becomes U+FFFD. */
function utf8(text) {
	const bytes = new Uint8Array(text.length * 3);
	let at = 0;
	for (let i = 0; i < text.length; i++) {
		let code = text.charCodeAt(i);
		if (code < 128) {
			bytes[at++] = code;
			continue;
		}
		if (code >= 55296 && code < 57344) {
			code = text.codePointAt(i);
			if (code > 65535) i++;
			else code = 65533;
		}
		if (code < 2048) bytes[at++] = 192 | code >> 6;
		else {
			if (code > 65535) {
				bytes[at++] = 240 | code >> 18;
				bytes[at++] = 128 | code >> 12 & 63;
			} else bytes[at++] = 224 | code >> 12;
			bytes[at++] = 128 | code >> 6 & 63;
		}
		bytes[at++] = 128 | code & 63;
	}
	return bytes.subarray(0, at);
}
/** Return how many bytes the UTF-8 of a text has, where each half of a code point counts as two. */
function utf8Length(text) {
	let length = text.length;
	for (let i = 0; i < text.length; i++) {
		const code = text.charCodeAt(i);
		if (code >= 128) length += code < 2048 || code >= 55296 && code < 57344 ? 1 : 2;
	}
	return length;
}
/** Whether a text has no lone half of a code point. */
const isUnicode = (text) => !/[\ud800-\udfff]/u.test(text);
//#endregion
//#region src/protocol/chunks.ts
/** Chunks: a long frame in pieces, in both directions (SPEC 3.3). */
/** Bytes of a chunk frame around its piece, at most. */
const OVERHEAD = 32;
/** Return how many bytes a payload has on the wire. */
const sizeOf = (payload) => typeof payload === "string" ? utf8Length(payload) : payload.length;
/** Return the encoded chunks of an encoded frame, each of at most `chunkBytes` bytes. */
function chunks(payload, n, chunkBytes, codec) {
	const made = [];
	const isText = typeof payload === "string";
	const size = isText ? Math.floor((chunkBytes - OVERHEAD) / 3) : chunkBytes - OVERHEAD;
	for (let start = 0; start < payload.length;) {
		let end = Math.min(start + size, payload.length);
		if (isText && end < payload.length && (payload.charCodeAt(end) & 64512) === 56320) end--;
		const piece = isText ? payload.slice(start, end) : payload.subarray(start, end);
		made.push(codec.encode([
			"chunk",
			n,
			end === payload.length,
			piece
		]));
		start = end;
	}
	return made;
}
/** Joins the chunks of one connection; holds at most `limit` bytes of pieces. */
var ChunkAssembler = class {
	open = /* @__PURE__ */ new Map();
	highest = -1;
	held = 0;
	constructor(limit) {
		this.limit = limit;
	}
	/**
	* Take a chunk and return its frame, still encoded, if it was the last piece.
	*
	* @throws MidstreamError `limit_exceeded`: the frame is too long and was given up.
	*/
	feed(chunk) {
		const { n, piece } = chunk;
		if (n > this.highest) {
			this.highest = n;
			this.open.set(n, {
				pieces: [],
				bytes: 0
			});
		}
		const frame = this.open.get(n);
		if (!frame) return;
		const size = sizeOf(piece);
		const held = this.held + size;
		if (held > this.limit) {
			this.giveUp(n);
			throw limitExceeded("frame_bytes", this.limit, held);
		}
		frame.pieces.push(piece);
		frame.bytes += size;
		this.held = held;
		if (!chunk.last) return;
		this.giveUp(n);
		return joined(frame.pieces, frame.bytes);
	}
	giveUp(n) {
		this.held -= this.open.get(n)?.bytes ?? 0;
		this.open.delete(n);
	}
};
function joined(pieces, bytes) {
	if (typeof pieces[0] === "string") {
		const text = pieces.join("");
		if (!isUnicode(text)) throw invalid("piece", "holds half a code point");
		return text;
	}
	const whole = new Uint8Array(bytes);
	let at = 0;
	for (const piece of pieces) {
		whole.set(piece, at);
		at += piece.length;
	}
	return whole;
}
//#endregion
//#region src/protocol/values.ts
/** What the protocol carries, and what it does not (SPEC 2.1). */
/** Return why a value cannot be sent, with the path of what is wrong; undefined where nothing is. */
function problemIn(value, nesting, path = "") {
	switch (typeof value) {
		case "string": return isUnicode(value) ? void 0 : invalid(path, "holds half a code point");
		case "number": return Number.isSafeInteger(value) || Number.isFinite(value) && !Number.isInteger(value) ? void 0 : invalid(path, "is no number that is carried: integers are below 2^53, others finite");
		case "boolean":
		case "undefined": return;
		case "object": break;
		default: return invalid(path, `is a ${typeof value}, which is not carried`);
	}
	if (value === null) return;
	if (nesting < 1) return invalid(path, "is nested too deep");
	for (const [name, item] of Object.entries(value)) {
		const at = Array.isArray(value) ? `${path}[${name}]` : path ? `${path}.${name}` : name;
		const problem = problemIn(name, 1, at) ?? problemIn(item, nesting - 1, at);
		if (problem) return problem;
	}
}
//#endregion
//#region src/client/calls.ts
const isError = (answer) => answer instanceof MidstreamError;
/** All calls of a client without an answer: waiting to be sent, in flight, or put off for a while. */
var CallTable = class {
	nextId = 0;
	waiting = [];
	inFlight = /* @__PURE__ */ new Map();
	later = /* @__PURE__ */ new Set();
	/** Take a call; it waits until `take` gives it out. */
	add(given) {
		const call = {
			...given,
			id: this.nextId++,
			attempts: 0,
			abandoned: false
		};
		const place = call.urgent ? this.waiting.findIndex((other) => !other.urgent) : -1;
		this.waiting.splice(place < 0 ? this.waiting.length : place, 0, call);
		return call;
	}
	/** Return the next call to send, now in flight; undefined where none waits or `limit` are in flight. */
	take(limit) {
		const call = this.inFlight.size < limit ? this.waiting.shift() : void 0;
		if (call) this.inFlight.set(call.id, call);
		return call;
	}
	/** Return the call that was answered, which is forgotten; undefined for an id that is not in flight. */
	answered(id) {
		const call = this.inFlight.get(id);
		this.inFlight.delete(id);
		return call;
	}
	/** Keep a call that the server put off, until `resume` or the next connection. */
	putOff(call) {
		call.attempts++;
		this.later.add(call);
	}
	resume(call) {
		if (this.later.delete(call)) this.waiting.push(call);
	}
	/** Wait for this answer no longer. A call that was not sent never is. */
	abandon(call) {
		call.abandoned = true;
		this.later.delete(call);
		this.waiting = this.waiting.filter((other) => other !== call);
	}
	/** Keep what may be repeated; return the others, and whether each was sent. */
	disconnected() {
		const sent = new Set(this.inFlight.values());
		const all = this.clear();
		this.waiting = all.filter((call) => call.repeatable).sort((a, b) => a.id - b.id);
		return all.filter((call) => !call.repeatable).map((call) => [call, sent.has(call)]);
	}
	/** Forget all calls, and return those that somebody waits for. */
	clear() {
		const all = [
			...this.inFlight.values(),
			...this.waiting,
			...this.later
		];
		this.inFlight.clear();
		this.later.clear();
		this.waiting = [];
		return all.filter((call) => !call.abandoned);
	}
};
//#endregion
//#region src/client/reconnect.ts
/**
* When to connect, to ask whether the link lives, to give it up, and to come back (SPEC 4.7).
*
* `Reconnect` is told what happened and what time it is, and answers with what is to be done. It opens
* nothing, waits for nothing and reads no clock. All times are in ms.
*/
/** Whether to connect again after this close code: always, but in the range that says no (SPEC 11.3). */
const comesBack = (code) => code < 4500 || code > 4999;
const DEFAULT_POLICY = {
	backoffMs: 500,
	backoffLimitMs: 3e4,
	stableMs: 1e4,
	connectMs: 1e4,
	probeMs: 5e3,
	wakeMs: 700,
	checkMs: 5e3,
	goawayLimitMs: 6e5
};
/** A random pause from 0 to a bound that doubles with each attempt, so that clients do not come back together. */
const fullJitter = (random, attempt, policy = DEFAULT_POLICY) => random() * Math.min(policy.backoffLimitMs, policy.backoffMs * 2 ** attempt);
/** The heartbeat until a `welcome` names the server's. */
const HEARTBEAT_MS = 15e3;
/** A server that names a shorter heartbeat is not believed. */
const LEAST_HEARTBEAT_MS = 100;
/**
* Keeps one connection alive for as long as it is wanted. The owner calls `poll` when `deadline` has passed,
* carries out the effects that any method returns, and reports what happened. As long as it is neither idle
* nor closed there is a deadline, so it never gets stuck.
*/
var Reconnect = class {
	phase = "idle";
	heartbeatMs = HEARTBEAT_MS;
	attempt = 0;
	checkedAt = 0;
	checkedWallMs = 0;
	connectingAt = 0;
	retryAt = 0;
	welcomedAt;
	receivedAt = 0;
	pinged = false;
	spokeAt = 0;
	nonce = 0;
	probe;
	returnAt;
	constructor(random, policy = DEFAULT_POLICY) {
		this.random = random;
		this.policy = policy;
	}
	/** When `poll` is due; undefined while idle or closed. */
	get deadline() {
		const checkAt = this.checkedAt + Math.min(this.policy.checkMs, this.heartbeatMs / 3);
		switch (this.phase) {
			case "connecting": return this.connectingAt + this.policy.connectMs;
			case "waiting": return Math.min(this.retryAt, checkAt);
			case "open": {
				const silenceAt = this.receivedAt + this.heartbeatMs * (this.pinged ? 2 : 1);
				const livesUntil = this.probeEnds() ?? Math.min(silenceAt, this.spokeAt + this.heartbeatMs);
				return Math.min(livesUntil, checkAt, this.returnAt ?? checkAt);
			}
			case "dropping": return checkAt;
			default: return;
		}
	}
	/** Begin: connect at once. */
	start(now, wallMs) {
		if (this.phase !== "idle") return [];
		this.checkClocks(now, wallMs);
		return this.connect(now);
	}
	/** The server said `welcome`, and its heartbeat. */
	welcomed(now, heartbeatMs) {
		if (this.phase === "connecting") {
			this.phase = "open";
			this.heartbeatMs = Math.max(heartbeatMs, LEAST_HEARTBEAT_MS);
			this.welcomedAt = this.spokeAt = now;
			this.probe = this.returnAt = void 0;
			this.received(now);
		}
	}
	/** Something came from the server. */
	received(now) {
		this.receivedAt = now;
		this.pinged = false;
	}
	/** A `ping` was answered. */
	ponged(nonce) {
		if (this.probe && nonce >= this.probe.nonce) this.probe = void 0;
	}
	/** The server drains, and wants to see this client again after a while. */
	goaway(now, afterMs) {
		if (this.phase === "open") this.returnAt = now + Math.min(afterMs, this.policy.goawayLimitMs);
	}
	/** The connection or the attempt ended; `final`: coming back is of no use. */
	lost(now, final = false) {
		if (this.phase === "idle" || this.phase === "closed") return;
		if (this.welcomedAt !== void 0 && now - this.welcomedAt >= this.policy.stableMs) this.attempt = 0;
		this.welcomedAt = this.probe = void 0;
		this.phase = final ? "closed" : "waiting";
		this.retryAt = Math.max(now, this.returnAt ?? now + fullJitter(this.random, this.attempt++, this.policy));
		this.returnAt = void 0;
	}
	/** The program is in the foreground again, or the network changed: prove that the link lives, or come back at once. */
	wake(now, wallMs) {
		this.checkClocks(now, wallMs);
		if (this.phase === "waiting") return this.connect(now);
		if (this.phase === "connecting" && now - this.connectingAt > this.policy.wakeMs) return this.dropAndReturn(now, "the attempt began before the return to the foreground");
		return this.phase === "open" ? this.prove(now, this.policy.wakeMs) : [];
	}
	/** Let the connection go until `wake`: there will be no timers, or sockets must not stay open. */
	suspend(why) {
		this.returnAt = Number.POSITIVE_INFINITY;
		if (this.phase === "waiting") this.retryAt = this.returnAt;
		return this.phase === "open" || this.phase === "connecting" ? this.drop(why) : [];
	}
	/** End for good. */
	close() {
		this.phase = "closed";
	}
	/** Do what is due. */
	poll(now, wallMs) {
		const slept = this.checkClocks(now, wallMs);
		switch (this.phase) {
			case "connecting": return now >= this.connectingAt + this.policy.connectMs ? this.drop(`the server did not answer within ${this.policy.connectMs} ms`) : [];
			case "waiting": return slept && this.retryAt < Number.POSITIVE_INFINITY || now >= this.retryAt ? this.connect(now) : [];
			case "open": return this.watch(now, slept);
			default: return [];
		}
	}
	watch(now, slept) {
		if (this.returnAt !== void 0 && now >= this.returnAt) return this.drop("the server is going away");
		if (slept && !this.probe) return this.prove(now, this.policy.probeMs);
		if (this.probe) return now >= this.probeEnds() ? this.dropAndReturn(now, "a ping was not answered after the program slept") : [];
		if (now >= this.receivedAt + 2 * this.heartbeatMs) return this.drop(`nothing was received for two heartbeats (${2 * this.heartbeatMs} ms)`);
		const asks = now >= this.receivedAt + this.heartbeatMs && !this.pinged;
		if (asks || now >= this.spokeAt + this.heartbeatMs) {
			this.pinged ||= asks;
			return this.ping(now);
		}
		return [];
	}
	prove(now, quietMs) {
		this.probe = {
			nonce: this.nonce,
			at: now,
			by: now + Math.max(quietMs, this.policy.probeMs),
			quietMs
		};
		return this.ping(now);
	}
	probeEnds() {
		const { probe } = this;
		return probe && Math.min(probe.by, Math.max(probe.at, this.receivedAt) + probe.quietMs);
	}
	ping(now) {
		this.spokeAt = now;
		return [{
			kind: "ping",
			nonce: this.nonce++
		}];
	}
	drop(why) {
		this.phase = "dropping";
		return [{
			kind: "drop",
			why
		}];
	}
	dropAndReturn(now, why) {
		this.returnAt = now;
		return this.drop(why);
	}
	connect(now) {
		this.phase = "connecting";
		this.connectingAt = now;
		this.returnAt = void 0;
		return [{ kind: "connect" }];
	}
	/** Whether the machine slept, or this program got no time: the next look came much later than it was due. */
	checkClocks(now, wallMs) {
		const gone = Math.max(wallMs - this.checkedWallMs, now - this.checkedAt);
		this.checkedAt = now;
		this.checkedWallMs = wallMs;
		return gone > this.heartbeatMs + this.policy.checkMs;
	}
};
//#endregion
//#region src/client/exchange.ts
/** Calls and their answers: sending, matching, repeating, putting off (SPEC 7). */
/**
* All calls of a client, over however many connections it takes.
*
* A repeatable call survives its connection, and is made again, with growing pauses, where the server says
* that it may be (`overloaded`, `unavailable`). Any other is answered by `connection_lost` when the
* connection goes, and is not even sent without one.
*/
var Exchange = class {
	/** What last stood between this client and the server, for the texts of errors. */
	problem;
	/** What the server last said that it takes. */
	limits = DEFAULT_LIMITS;
	table = new CallTable();
	transport;
	codec;
	isHeld = false;
	closed;
	constructor(timers, random, timeoutMs) {
		this.timers = timers;
		this.random = random;
		this.timeoutMs = timeoutMs;
	}
	/** Whether calls go out now. */
	get isConnected() {
		return this.transport !== void 0;
	}
	/** Make a call; `reply` is called once, perhaps before this returns. */
	start(method, params, kind, reply) {
		const refusal = this.closed ?? (kind.repeatable || this.transport ? void 0 : connectionLost(method, false)) ?? problemIn(params, this.limits.nesting - 1);
		if (refusal) {
			reply(refusal);
			return;
		}
		const call = this.table.add({
			method,
			params,
			...kind,
			reply
		});
		this.flush();
		return call;
	}
	/**
	* Make a call and return what `take` makes of its result. `take` is called in the middle of the stream,
	* where the answer stands: the replica is then at the version that the answer shows.
	*
	* @throws MidstreamError the server's refusal, `connection_lost` or `timed_out`.
	*/
	ask(method, params, repeatable, take = (result) => result) {
		return new Promise((resolve, reject) => {
			let stop;
			const call = this.start(method, params, { repeatable }, (answer) => {
				stop?.();
				if (isError(answer)) reject(answer);
				else resolve(take(answer));
			});
			const { timeoutMs } = this;
			if (call && timeoutMs !== void 0) stop = this.timers.later(timeoutMs, () => {
				this.table.abandon(call);
				reject(timedOut(`An answer to ${method}`, timeoutMs, this.problem));
			});
		});
	}
	/** Use this connection. Nothing goes out until `release`, so that what is urgent goes first. */
	connect(transport, codec, limits) {
		Object.assign(this, {
			transport,
			codec,
			limits,
			isHeld: true
		});
	}
	/** Send what waits and may go, and from now on what is started. */
	release() {
		this.isHeld = false;
		this.flush();
	}
	/** The connection is gone. */
	disconnect() {
		this.transport = void 0;
		for (const [call, sent] of this.table.disconnected()) call.reply(connectionLost(call.method, sent));
	}
	/** Answer every call with this error, and each that will come. */
	close(error) {
		this.transport = void 0;
		this.closed = error;
		for (const call of this.table.clear()) call.reply(error);
	}
	/** Give an answer to the call that asked for it; one that nobody asked for is ignored. */
	answered(id, answer) {
		const call = this.table.answered(id);
		if (call && !call.abandoned) this.settle(call, "error" in answer ? refused(answer.error) : read(call.method, answer.result));
		this.flush();
	}
	settle(call, answer) {
		if (isError(answer) && answer.retryable && call.repeatable) {
			const pause = fullJitter(this.random, call.attempts);
			this.table.putOff(call);
			this.timers.later(pause, () => {
				this.table.resume(call);
				this.flush();
			});
		} else call.reply(answer);
	}
	flush() {
		while (this.transport && this.codec && !this.isHeld) {
			const call = this.table.take(this.limits.calls_in_flight);
			if (!call) return;
			const payload = this.codec.encode([
				"call",
				call.id,
				call.method,
				call.params
			]);
			const size = sizeOf(payload);
			if (size > this.limits.frame_bytes) {
				this.table.answered(call.id);
				call.reply(limitExceeded("frame_bytes", this.limits.frame_bytes, size));
			} else this.transport.send(payload);
		}
	}
};
const refused = ({ code, message, details, retryable }) => new MidstreamError(code, message, details, retryable);
function read(method, result) {
	try {
		return RESULTS[method](result, "");
	} catch (error) {
		return incompatibleServer(`The result of ${method} cannot be read: ${error}.`);
	}
}
//#endregion
//#region src/protocol/codec.ts
/** The two encodings of a frame, which mean the same (SPEC 3.1). */
const decoding = (read, isMine) => (data) => {
	if (!isMine(data)) throw malformed("it came as the other kind of WebSocket message");
	try {
		return read(data);
	} catch (error) {
		throw malformed(error instanceof Error ? error.message : String(error));
	}
};
const isText = (data) => typeof data === "string";
const isBytes = (data) => typeof data !== "string";
/** Frames as JSON, in text messages. */
const JSON_CODEC = {
	name: "json",
	subprotocol: "midstream.v1.json",
	encode: (value) => JSON.stringify(value),
	decode: decoding((data) => JSON.parse(data), isText)
};
/**
* Load the codec for msgpack. It needs TextEncoder and TextDecoder, which some engines lack: so it is not
* loaded with this module.
*
* @throws MidstreamError `unsupported`: this engine cannot.
*/
async function loadMsgpack() {
	try {
		const { decode, encode } = await import("@msgpack/msgpack");
		return {
			name: "msgpack",
			subprotocol: "midstream.v1.msgpack",
			encode: (value) => encode(value, { ignoreUndefined: true }),
			decode: decoding((data) => decode(data), isBytes)
		};
	} catch (error) {
		throw new MidstreamError("unsupported", `msgpack cannot be used here: ${error}. Use encoding: "json".`);
	}
}
//#endregion
//#region src/client/transport.ts
/** One WebSocket connection: frames in, frames out. It decides nothing (SPEC 3). */
/** Bytes of a frame from the server, chunks joined: one message may have 32 MiB, a sync several. */
const MAX_FRAME_BYTES = 256 * 1024 * 1024;
const VERSION_MISMATCH = 4503;
const UNAUTHORIZED = 4504;
var Transport = class {
	/** Frames above it are sent in chunks; the server's `welcome` may say otherwise. */
	chunkBytes = DEFAULT_LIMITS.chunk_bytes;
	assembler;
	chunked = 0;
	problem = "";
	isOver = false;
	constructor(socket, codec, maxFrameBytes, user) {
		this.socket = socket;
		this.codec = codec;
		this.user = user;
		this.assembler = new ChunkAssembler(maxFrameBytes);
		socket.binaryType = "arraybuffer";
		socket.onopen = () => this.open();
		socket.onmessage = (event) => this.take(event.data);
		socket.onerror = (event) => {
			this.problem = event.message ?? "";
		};
		socket.onclose = (event) => this.over(ending(event, this.problem));
	}
	/** Send a frame; one that is too long for a WebSocket message goes in chunks. */
	send(payload) {
		const all = payload.length > this.chunkBytes / 3 && sizeOf(payload) > this.chunkBytes ? chunks(payload, this.chunked++, this.chunkBytes, this.codec) : [payload];
		for (const message of all) this.socket.send(message);
	}
	/** End it at once, without waiting for the other end, which may not be there. */
	abort(why) {
		this.over({ why });
	}
	open() {
		if (this.socket.protocol === this.codec.subprotocol) this.user.opened();
		else {
			const why = `The server does not speak ${this.codec.subprotocol}.`;
			this.over({
				why,
				final: incompatibleServer(why)
			});
		}
	}
	take(data) {
		let frame;
		try {
			frame = this.read(typeof data === "string" ? data : new Uint8Array(data));
			if (frame?.tag === "chunk") {
				const whole = this.assembler.feed(frame);
				frame = whole === void 0 ? void 0 : this.read(whole);
			}
		} catch (error) {
			if (!(error instanceof MidstreamError)) throw error;
			const final = error.code === "limit_exceeded" ? { final: error } : { isUnreadable: true };
			this.over({
				why: `the server sent what cannot be read: ${error.message}`,
				...final
			});
			return;
		}
		this.user.received(frame);
	}
	read(data) {
		return readServerFrame(this.codec.decode(data));
	}
	over(end) {
		if (this.isOver) return;
		this.isOver = true;
		const { socket } = this;
		socket.onerror = () => void 0;
		socket.onopen = socket.onmessage = socket.onclose = null;
		socket.close();
		this.user.ended(end);
	}
};
function ending({ code = 1006, reason = "" }, problem) {
	if (comesBack(code)) return { why: `the connection ended (${[
		code,
		reason,
		problem
	].filter(Boolean).join(", ")})` };
	const rejected = connectionRejected(code, reason);
	const final = code === VERSION_MISMATCH ? incompatibleServer(`The server does not speak version 1: ${reason}.`) : rejected;
	return {
		why: rejected.message,
		final,
		isUnauthorized: code === UNAUTHORIZED
	};
}
//#endregion
//#region src/client/link.ts
/**
* The one connection of a client, kept for as long as it is wanted.
*
* The shell around `Reconnect`: it carries out what that decides, greets the server, answers pings, and
* passes everything else on.
*/
var Link = class {
	/** What ended the last connection or attempt; undefined once there is a connection. */
	problem;
	core;
	transport;
	codec;
	welcomed = false;
	refused = false;
	isJsonBetter = false;
	/** Counts attempts: what was begun in an earlier one has no effect any more. */
	attempt = 0;
	disarm;
	constructor(options, user, environment, timers) {
		this.options = options;
		this.user = user;
		this.environment = environment;
		this.timers = timers;
		this.core = new Reconnect(() => environment.random(), options.policy);
	}
	/** Begin to connect; of no effect the second time. */
	start() {
		this.act(this.core.start(this.environment.now(), this.environment.wallMs()));
	}
	/** Prove that the connection lives, or make one at once. */
	wake() {
		this.act(this.core.wake(this.environment.now(), this.environment.wallMs()));
	}
	/** Let the connection go until `wake`. */
	suspend() {
		this.act(this.core.suspend("the page went away"));
	}
	/** End for good. */
	close() {
		this.core.close();
		this.attempt++;
		this.disarm?.();
		this.transport?.abort("the client was closed");
	}
	act(effects) {
		for (const effect of effects) if (effect.kind === "connect") {
			this.user.linkDown("connecting");
			this.connect(++this.attempt);
		} else if (effect.kind === "drop") {
			const { transport } = this;
			if (transport) transport.abort(effect.why);
			else this.ended({ why: effect.why });
		} else this.send("ping", effect.nonce);
		this.arm();
	}
	arm() {
		this.disarm?.();
		const { deadline } = this.core;
		this.disarm = deadline === void 0 ? void 0 : this.timers.later(deadline - this.environment.now(), () => this.act(this.core.poll(this.environment.now(), this.environment.wallMs())));
	}
	connect(attempt) {
		this.welcomed = false;
		this.prepare().then(([codec, token]) => this.timers.run(() => attempt === this.attempt && this.open(attempt, codec, token)), (error) => this.timers.run(() => attempt === this.attempt && this.ended(failed(error))));
	}
	/** Have what an attempt needs: a codec, which is loaded once, and the token of now. */
	async prepare() {
		const { encoding, token } = this.options;
		if (typeof encoding === "object") this.codec = encoding;
		else if (encoding === "json" || this.isJsonBetter) this.codec = JSON_CODEC;
		this.codec ??= await loadMsgpack().catch((error) => {
			if (encoding === "auto") return JSON_CODEC;
			throw error;
		});
		return [this.codec, typeof token === "function" ? await token(this.refused) : token];
	}
	open(attempt, codec, token) {
		const guarded = (act) => (...given) => this.timers.run(() => attempt === this.attempt && act(...given));
		const { url, maxFrameBytes } = this.options;
		let socket;
		try {
			socket = this.environment.socket(url, [codec.subprotocol]);
		} catch (error) {
			this.ended(failed(error));
			return;
		}
		this.transport = new Transport(socket, codec, maxFrameBytes, {
			opened: guarded(() => this.send("hello", 1, token, { client: "midstream-typescript" })),
			received: guarded((frame) => this.received(frame)),
			ended: guarded((end) => this.ended(end))
		});
	}
	received(frame) {
		const now = this.environment.now();
		this.core.received(now);
		if (frame?.tag === "ping") this.send("pong", frame.nonce, this.environment.wallMs());
		else if (frame?.tag === "pong") {
			this.core.ponged(frame.nonce);
			this.arm();
		} else if (frame?.tag === "goaway") {
			this.core.goaway(now, frame.reconnect_after_ms);
			this.arm();
		} else if (frame?.tag === "welcome") this.welcome(now, frame.info);
		else if (frame && this.welcomed) this.user.linkFrame(frame);
		else if (frame && frame.tag !== "error") {
			const final = incompatibleServer(`The server began with '${frame.tag}' instead of 'welcome'.`);
			this.transport?.abort(final.message);
			this.finish(final);
		}
	}
	welcome(now, welcome) {
		if (this.welcomed || !this.transport || !this.codec) return;
		this.welcomed = true;
		this.refused = false;
		this.problem = void 0;
		this.transport.chunkBytes = welcome.limits.chunk_bytes;
		this.core.welcomed(now, welcome.heartbeat_ms);
		this.arm();
		this.user.linkOpened(this.transport, this.codec, welcome);
	}
	ended(end) {
		this.attempt++;
		this.transport = void 0;
		this.problem = end.why;
		this.isJsonBetter ||= end.isUnreadable === true && this.options.encoding === "auto";
		const asksAgain = end.isUnauthorized && typeof this.options.token === "function";
		this.refused = asksAgain === true;
		if (end.final && !asksAgain) this.finish(end.final);
		else {
			this.core.lost(this.environment.now());
			this.user.linkDown("offline");
			this.arm();
		}
	}
	finish(error) {
		this.core.lost(this.environment.now(), true);
		this.disarm?.();
		this.user.linkEnded(error);
	}
	send(...frame) {
		if (this.codec) this.transport?.send(this.codec.encode(frame));
	}
};
/** What stands against an attempt before there is a socket; an error of ours will be the same the next time. */
const failed = (error) => {
	const why = error instanceof Error ? error.message : String(error);
	return error instanceof MidstreamError ? {
		why,
		final: error
	} : { why };
};
//#endregion
//#region src/client/streams.ts
/** What a client publishes to its readers: each has a bounded buffer of its own, and none delays another. */
/**
* What one reader reads with `for await`: everything since it was made, in order.
*
* At most `limit` items wait. What becomes of a slower reader is said by `overflow`, which makes the one item
* that then stands for all that waited; without it the oldest item is dropped. Leaving the loop ends it.
*/
var Stream = class {
	items = [];
	waiting = [];
	ended;
	constructor(limit, overflow, onEnd) {
		this.limit = limit;
		this.overflow = overflow;
		this.onEnd = onEnd;
	}
	push(item) {
		if (this.items.length < this.limit) this.items.push(item);
		else if (this.overflow) this.items = [this.overflow()];
		else this.items = [...this.items.slice(1), item];
		this.wake();
	}
	/** End it: after what waits the reader gets the error, or the loop just ends. */
	end(error) {
		this.ended ??= { error };
		this.wake();
	}
	async next() {
		while (!this.items.length && !this.ended) await new Promise((resolve) => this.waiting.push(resolve));
		if (this.items.length) return {
			done: false,
			value: this.items.shift()
		};
		const error = this.ended?.error;
		this.ended = {};
		if (error) throw error;
		return {
			done: true,
			value: void 0
		};
	}
	/** Stop reading: what waits is dropped and nothing more is kept. */
	async return() {
		this.onEnd(this);
		this.items = [];
		this.end();
		return {
			done: true,
			value: void 0
		};
	}
	[Symbol.asyncIterator]() {
		return this;
	}
	wake() {
		for (const resolve of this.waiting.splice(0)) resolve();
	}
};
/** Gives each item to all readers that there are. */
var Fanout = class {
	readers = /* @__PURE__ */ new Set();
	ended;
	constructor(limit = 100) {
		this.limit = limit;
	}
	/** Whether anybody reads. */
	get isRead() {
		return this.readers.size > 0;
	}
	/** Return a new stream, which begins now. */
	reader(limit = this.limit, overflow) {
		const stream = new Stream(limit, overflow, (ended) => this.readers.delete(ended));
		if (this.ended) stream.end(this.ended.error);
		else this.readers.add(stream);
		return stream;
	}
	publish(item) {
		for (const stream of this.readers) stream.push(item);
	}
	/** End all streams, and those that are asked for later. */
	end(error) {
		this.ended = { error };
		for (const stream of this.readers) stream.end(error);
		this.readers.clear();
	}
};
//#endregion
//#region src/client/timers.ts
var Timers = class {
	waiting = /* @__PURE__ */ new Set();
	/** `onFailure` is told what a callback throws. */
	constructor(environment, onFailure) {
		this.environment = environment;
		this.onFailure = onFailure;
	}
	/** Call back after so many ms; the returned function takes that back. */
	later(ms, callback) {
		const cancel = () => {
			stop();
			this.waiting.delete(cancel);
		};
		const stop = this.environment.later(Math.max(0, ms), () => {
			this.waiting.delete(cancel);
			this.run(callback);
		});
		this.waiting.add(cancel);
		return cancel;
	}
	/** Call back now, and report what is thrown. */
	run(callback) {
		try {
			callback();
		} catch (error) {
			this.onFailure(error);
		}
	}
	/** Let nothing come any more. */
	cancelAll() {
		for (const cancel of this.waiting) cancel();
	}
};
//#endregion
//#region src/client/waiting.ts
/** Who wants to know when one thing changes. */
var Changes = class {
	listeners = /* @__PURE__ */ new Set();
	constructor(later) {
		this.later = later;
	}
	/** Call back after each change; the returned function ends that. */
	listen(listener) {
		const own = () => listener();
		this.listeners.add(own);
		return () => this.listeners.delete(own);
	}
	notify() {
		for (const listener of [...this.listeners]) listener();
	}
	/**
	* Return the first value of `look` that is not undefined; it is called now and after each change.
	*
	* @throws MidstreamError `timed_out`; and what `look` throws.
	*/
	until(look, wait) {
		return new Promise((resolve, reject) => {
			const end = (settle) => {
				stop?.();
				ignore();
				settle();
			};
			const again = () => {
				try {
					const value = look();
					if (value !== void 0) end(() => resolve(value));
				} catch (error) {
					end(() => reject(error));
				}
			};
			const { timeoutMs, what } = wait;
			const stop = timeoutMs === void 0 ? void 0 : this.later(timeoutMs, () => end(() => reject(timedOut(what, timeoutMs, wait.problem()))));
			const ignore = this.listen(again);
			again();
		});
	}
};
//#endregion
//#region src/client/hub.ts
/** The inside of a client: its link, its calls and its subscriptions. */
var Hub = class {
	state = "connecting";
	/** Why it is closed, where nobody asked for it. */
	error;
	welcome;
	states = new Fanout();
	changed;
	exchange;
	tools;
	/** Called when the program may be ended at any moment. */
	onAsleep = () => void 0;
	timers;
	link;
	subscriptions = /* @__PURE__ */ new Map();
	channels = /* @__PURE__ */ new Map();
	unwatch;
	constructor(options, environment, callTimeoutMs) {
		this.environment = environment;
		const timers = new Timers(environment, (error) => this.end(clientFailed(error)));
		this.timers = timers;
		this.exchange = new Exchange(timers, () => environment.random(), callTimeoutMs);
		this.changed = new Changes((ms, callback) => timers.later(ms, callback));
		this.tools = {
			exchange: this.exchange,
			timers,
			router: this,
			environment
		};
		this.link = new Link(options, this, environment, timers);
	}
	/** Connect, if that has not begun. @throws MidstreamError it is closed. */
	begin() {
		if (this.state === "closed") throw this.error ?? clientClosed();
		this.unwatch ??= this.environment.watch?.((news) => this.timers.run(() => {
			if (news === "awake") this.link.wake();
			else {
				this.onAsleep();
				if (news === "away") this.link.suspend();
			}
		}));
		this.link.start();
	}
	/** Keep this subscription from now on, until `remove`. */
	add(subscription, sessionId) {
		this.subscriptions.set(sessionId, subscription);
		if (this.state === "offline") subscription.disconnected("offline");
	}
	/** Forget a subscription that is closed. */
	remove(sessionId) {
		this.subscriptions.delete(sessionId);
	}
	close() {
		this.end(void 0);
	}
	listen(channel, subscription) {
		this.channels.set(channel, subscription);
	}
	mute(subscription) {
		for (const [channel, to] of this.channels) if (to === subscription) this.channels.delete(channel);
	}
	/** Take a new connection: subscribe anew, then repeat what is safe to repeat. */
	linkOpened(transport, codec, welcome) {
		this.welcome = welcome;
		this.exchange.problem = void 0;
		this.enter("live");
		this.exchange.connect(transport, codec, welcome.limits);
		for (const subscription of [...this.subscriptions.values()]) subscription.connected();
		this.exchange.release();
	}
	/** Bring a frame where it belongs; those of channels that are not ours any more are ignored. */
	linkFrame(frame) {
		switch (frame.tag) {
			case "result":
				this.exchange.answered(frame.id, frame);
				break;
			case "error":
				if (frame.id !== null) this.exchange.answered(frame.id, frame);
				break;
			case "d":
			case "change":
			case "skip":
			case "sync":
			case "mark":
				this.channels.get(frame.channel)?.frame(frame);
				break;
			case "closed":
				this.channels.get(frame.channel)?.ended(frame);
				break;
			case "signal":
				this.channels.get(frame.channel)?.user?.onSignal(frame);
				break;
		}
	}
	linkDown(state) {
		this.exchange.problem = this.link.problem;
		this.channels.clear();
		this.exchange.disconnect();
		this.enter(state);
		for (const subscription of [...this.subscriptions.values()]) subscription.disconnected(state);
	}
	linkEnded(error) {
		this.end(error);
	}
	/** End all; once. */
	end(error) {
		if (this.state === "closed") return;
		this.error = error;
		this.enter("closed");
		this.unwatch?.();
		for (const subscription of [...this.subscriptions.values()]) subscription.close(error);
		this.exchange.close(error ?? clientClosed());
		this.link.close();
		this.timers.cancelAll();
		this.states.end();
	}
	enter(state) {
		if (state !== this.state) {
			this.state = state;
			this.states.publish(state);
			this.changed.notify();
		}
	}
};
//#endregion
//#region src/protocol/outcomes.ts
/** Thrown within the merge law by what cannot be applied. */
var Misfit = class {
	constructor(gap) {
		this.gap = gap;
	}
};
const restart = (reason) => new Misfit({
	kind: "restart",
	reason
});
//#endregion
//#region src/protocol/window.ts
const NEW_FIELDS = [
	"message_id",
	"session_id",
	"role",
	"visibility",
	"created_at"
];
/** Messages by sequence, from `first` upward; with `first` undefined the window is not open yet. */
var Window = class {
	held = /* @__PURE__ */ new Map();
	ids = /* @__PURE__ */ new Map();
	snapshot;
	/** `end` is the sequence above the last, where the window is to be joined to another. */
	constructor(sessionId, first, end = Number.POSITIVE_INFINITY) {
		this.sessionId = sessionId;
		this.first = first;
		this.end = end;
	}
	get size() {
		return this.held.size;
	}
	/** The messages, ascending: the same list until something changes. */
	messages() {
		this.snapshot ??= [...this.held.values()].sort((a, b) => a.sequence - b.sequence);
		return this.snapshot;
	}
	message(messageId) {
		const sequence = this.ids.get(messageId);
		return sequence === void 0 ? void 0 : this.held.get(sequence);
	}
	/** Hold these messages, in place of those of the same sequence. */
	put(messages) {
		for (const message of messages) {
			this.held.set(message.sequence, message);
			this.ids.set(message.message_id, message.sequence);
		}
		this.snapshot = void 0;
	}
	/** Take over the messages of the window that ends where this one begins, and its lower end. */
	join(earlier) {
		this.put(earlier.held.values());
		this.first = earlier.first;
	}
	/** Move the lower end up to `first`; say whether messages left. */
	dropBelow(first) {
		const before = this.held.size;
		for (const [sequence, message] of this.held) if (sequence < first) {
			this.held.delete(sequence);
			this.ids.delete(message.message_id);
			this.snapshot = void 0;
		}
		if (this.first !== void 0) this.first = Math.max(this.first, first);
		return this.held.size < before;
	}
	/** Apply a delta; undefined where the message is below the window or newer. @throws Misfit */
	append(delta) {
		const { message_sequence: sequence, part_sequence, version, text } = delta;
		const message = this.held.get(sequence);
		if (!message) {
			if (this.covers(sequence)) throw restart(`a delta to message ${sequence}, which is unknown`);
			return;
		}
		if (version <= message.revision) return;
		const parts = [...message.parts];
		const part = appendTo(parts, part_sequence, text);
		const updated_at = message.created_at + delta.elapsed;
		this.held.set(sequence, {
			...message,
			revision: version,
			updated_at,
			parts
		});
		this.snapshot = void 0;
		return appended(message.message_id, part.part_id, sequence, version, text);
	}
	/**
	* Compute what the entries make of the messages; changes nothing.
	*
	* `version` is the frame's. `since` is what a sync starts from, whose entries may have revisions of their
	* own. Messages below `below` are ignored, as those below the window are.
	*
	* @throws Misfit
	*/
	plan(entries, at) {
		const steps = [];
		const seen = /* @__PURE__ */ new Set();
		for (const entry of entries ?? []) {
			const { sequence } = entry;
			if (seen.has(sequence)) throw restart(`message ${sequence} stands twice`);
			seen.add(sequence);
			const revision = at.since === void 0 ? at.version : entry.revision ?? at.version;
			const before = this.held.get(sequence);
			if (this.covers(sequence) && sequence >= at.below && revision > (before?.revision ?? -1)) {
				this.check(entry, before);
				steps.push(merged(before, entry, revision, at.since, revision <= at.durable));
			}
		}
		return steps;
	}
	/** Put in place what was planned, and return what changed. */
	carryOut(steps) {
		this.put(steps.map((step) => step.message));
		return steps.flatMap((step) => step.changes);
	}
	covers(sequence) {
		return this.first !== void 0 && this.first <= sequence && sequence < this.end;
	}
	check(entry, before) {
		const { sequence, session_id, message_id } = entry;
		if (session_id !== void 0 && session_id !== this.sessionId || message_id !== void 0 && (this.ids.get(message_id) ?? sequence) !== sequence) throw restart(`message ${sequence} is of another session, or has the id of another message`);
		if (before && message_id !== void 0 && message_id !== before.message_id) throw restart(`message ${sequence} has another id`);
		if (!before && NEW_FIELDS.some((name) => entry[name] === void 0)) throw restart(`a piece of message ${sequence}, which is unknown`);
	}
};
function merged(before, entry, revision, since, durable) {
	const { parts: whole = [], appends = [], ended = [], part_count, ...own } = entry;
	const { sequence } = entry;
	if (appends.length || ended.length) {
		if (!before) throw restart(`text for message ${sequence}, which is unknown`);
		if (since === void 0 || before.revision > since) throw new Misfit({
			kind: "gap",
			reason: `text for message ${sequence} that begins below its revision`
		});
	}
	const parts = [...before?.parts ?? []];
	const known = parts.length;
	const changed = /* @__PURE__ */ new Set();
	let lost = part_count < known;
	for (const part of [...whole].sort((a, b) => a.sequence - b.sequence)) {
		if (part.sequence < 1 || part.sequence > parts.length + 1) throw restart(`part ${part.sequence} of message ${sequence} would leave a hole`);
		lost ||= part.sequence <= known && parts[part.sequence - 1]?.part_id !== part.part_id;
		parts[part.sequence - 1] = part;
		changed.add(part.sequence);
	}
	const texts = [];
	const message_id = before?.message_id ?? entry.message_id;
	for (const [at, text] of appends) {
		const part = changed.has(at) ? void 0 : appendTo(parts, at, text);
		if (!part || at > part_count) throw restart(`text for part ${at} of message ${sequence}, which is whole or gone`);
		texts.push(appended(message_id, part.part_id, sequence, revision, text));
	}
	for (const at of ended) {
		const part = changed.has(at) ? void 0 : growing(parts, at);
		if (!part || part.type === "tool" || at > part_count) throw restart(`the end of part ${at} of message ${sequence}, which is whole, gone or a tool`);
		parts[at - 1] = {
			...part,
			state: "done"
		};
	}
	if (part_count > parts.length) throw restart(`message ${sequence} has ${part_count} parts, but ${parts.length} are known`);
	parts.length = part_count;
	const message = {
		...before,
		...own,
		revision,
		parts
	};
	if (before && texts.length && !whole.length && !ended.length && !lost && isSameBesideText(before, own)) return {
		message,
		changes: texts
	};
	for (const at of [...appends.map(([at]) => at), ...ended]) changed.add(at);
	const kept = [...changed].filter((at) => at <= part_count).sort((a, b) => a - b);
	return {
		message,
		changes: [{
			kind: "message",
			message_id,
			sequence,
			revision,
			isNew: !before,
			parts: kept,
			durable,
			lost
		}]
	};
}
/** Whether an entry's own fields change nothing but the time and the revision. */
function isSameBesideText(before, own) {
	return Object.keys(own).every((name) => name === "updated_at" || name === "revision" || name === "origin" || own[name] === before[name]);
}
const appended = (message_id, part_id, sequence, revision, text) => ({
	kind: "appended",
	message_id,
	part_id,
	sequence,
	revision,
	text
});
/** Put the part with more text in its place, and return it. @throws Misfit */
function appendTo(parts, sequence, text) {
	const part = growing(parts, sequence);
	const grown = part.type === "tool" ? {
		...part,
		input_text: (part.input_text ?? "") + text
	} : {
		...part,
		text: part.text + text
	};
	parts[sequence - 1] = grown;
	return grown;
}
/** Return the part that text can be appended to. @throws Misfit */
function growing(parts, sequence) {
	const part = parts[sequence - 1];
	if (part && canGrow(part)) return part;
	throw restart(`text for part ${sequence}, which cannot grow`);
}
/** Whether a delta may follow. */
const canGrow = (part) => part.type === "tool" ? part.state === "input-streaming" : (part.type === "text" || part.type === "reasoning") && part.state === "streaming";
//#endregion
//#region src/protocol/pages.ts
/** Frames that are kept; where more come before the page does, it is read again. */
const KEPT = 2e3;
/** Keeps the frames that came since a page was asked for, until no page is on its way. */
var AwaitedPages = class {
	awaited = 0;
	since = 0;
	frames = [];
	/** A page was asked for when the replica stood at this version. */
	expect(version) {
		if (!this.awaited) this.restart(version);
		this.awaited++;
	}
	/** A page came, or will not come. */
	forget() {
		this.awaited = Math.max(0, this.awaited - 1);
		if (!this.awaited) this.frames = [];
	}
	/** Something other than single frames brought the replica to this version. */
	restart(version) {
		this.since = version;
		this.frames = [];
	}
	/** Keep a frame that was applied. */
	keep(frame) {
		if (this.awaited && this.frames.push(frame) > KEPT) this.restart(frame.version);
	}
	/** Return the frames above a version; undefined where some of them are not kept any more. */
	above(version) {
		return this.awaited && version >= this.since ? this.frames.filter((frame) => frame.version > version) : void 0;
	}
};
/** Return the page as the window that ends where `first` begins, or why it cannot be one; changes nothing. */
function earlierMessages(page, sessionId, first, frames, firstSequence) {
	const start = page.start_sequence;
	if (page.before_sequence !== first || page.has_more && start === void 0 || page.items.some((message) => message.session_id !== sessionId)) return "ignored";
	const earlier = new Window(sessionId, page.has_more ? start : firstSequence, first);
	earlier.put(page.items);
	try {
		for (const frame of frames) if (frame.tag === "d") earlier.append(frame);
		else {
			const { version } = frame;
			earlier.carryOut(earlier.plan(frame.content.messages, {
				version,
				below: 0,
				durable: version
			}));
		}
	} catch (error) {
		if (error instanceof Misfit) return "again";
		throw error;
	}
	earlier.dropBelow(firstSequence);
	return earlier;
}
//#endregion
//#region src/protocol/turns.ts
/** Turns that are kept whether or not a message names them, so that a late handle finds its turn's end. */
const NEWEST = 32;
var Turns = class {
	held = /* @__PURE__ */ new Map();
	constructor(turns = []) {
		this.take(turns);
	}
	/** The turns by id; a view. */
	get byId() {
		return this.held;
	}
	/** Keep what is newer than what is held, and return what changed. */
	take(turns = []) {
		const changes = [];
		for (const turn of turns) {
			const { turn_id, revision } = turn;
			if (revision > (this.held.get(turn_id)?.revision ?? -1)) {
				this.held.set(turn_id, turn);
				changes.push({
					kind: "turn",
					turn_id,
					revision
				});
			}
		}
		return changes;
	}
	/** Drop turns that nobody names, once there are more than `messages` and the newest need. */
	dropOld(messages, named) {
		if (this.held.size <= NEWEST + messages) return;
		const kept = named();
		const old = [...this.held.values()].sort((a, b) => b.revision - a.revision).slice(NEWEST);
		for (const { turn_id } of old) if (!kept.has(turn_id)) this.held.delete(turn_id);
	}
};
//#endregion
//#region src/protocol/merge.ts
const IGNORED = { kind: "ignored" };
const firstOf = (session) => session.first_sequence ?? 1;
/** A client's copy of one session, from `fromSequence` upward. */
var Replica = class {
	stage = "new";
	session;
	epoch;
	/** The version reached (`last` in SPEC.md). */
	version = 0;
	/** The last committed version at or below `version`, as far as is known; too low is safe. */
	durable = 0;
	/** Whether there are messages below the window, to be read as pages. */
	hasMore = true;
	window;
	held = new Turns();
	pages = new AwaitedPages();
	/** `includeInternal` is that of the subscription. */
	constructor(sessionId, includeInternal = false) {
		this.sessionId = sessionId;
		this.includeInternal = includeInternal;
		this.window = new Window(sessionId);
	}
	/** The lower end of the window; undefined while no messages were given, which a page then does. */
	get fromSequence() {
		return this.window.first;
	}
	/** The turns by id: those of the messages, the running one, and the newest 32. */
	get turns() {
		return this.held.byId;
	}
	/** The turn that runs now. */
	get runningTurn() {
		return this.turns.get(this.session?.running_turn_id ?? "");
	}
	/** The messages of the window, ascending: the same list until something changes, and so for each message. */
	messages() {
		return this.window.messages();
	}
	message(messageId) {
		return this.window.message(messageId);
	}
	/** What to subscribe with; undefined before the first sync, and while something is missing. */
	cursor() {
		const { epoch, version, durable } = this;
		return epoch === void 0 || this.stage === "lost" ? void 0 : {
			epoch,
			version,
			durable
		};
	}
	/** Apply the next frame of the subscription; those before the first sync are ignored. */
	apply(frame) {
		if (frame.tag === "sync") return this.applySync(frame.payload);
		if (this.stage === "lost") return NOTHING.gap;
		if (this.stage !== "live" || frame.version <= this.version) return IGNORED;
		const since = frame.tag === "skip" ? frame.from_version : frame.tag === "mark" ? frame.version : frame.version - 1;
		if (since > this.version) return this.missed(since);
		if (frame.tag === "d") return this.attempt(() => this.applyDelta(frame));
		if (frame.tag === "change") return this.attempt(() => this.applyChange(frame));
		this.version = frame.version;
		return {
			kind: "applied",
			changes: []
		};
	}
	/** Apply a sync: the answer to `subscribe`, or one that came as a frame. */
	applySync(payload) {
		return this.attempt(() => payload.mode === "reset" ? this.reset(payload) : this.catchUp(payload));
	}
	/** Keep single frames from here on, for a page that is asked for now; then `mergePage`. */
	expectPage() {
		this.pages.expect(this.version);
	}
	/** A page that was expected will not come. */
	forgetPage() {
		this.pages.forget();
	}
	/** Merge the answer of `messages` (never of `stored`); nothing changes unless it is applied. */
	mergePage(page) {
		const outcome = this.judgePage(page);
		this.pages.forget();
		return outcome;
	}
	/** Return everything as one value for a store, with the newest `most` messages; undefined without a cursor. */
	save(most = Number.POSITIVE_INFINITY) {
		const cursor = this.cursor();
		if (!cursor || !this.session) return;
		const messages = this.messages().slice(-most);
		const isCut = messages.length < this.window.size;
		const from = isCut ? messages[0]?.sequence : this.fromSequence;
		return {
			session_id: this.sessionId,
			include_internal: this.includeInternal,
			cursor,
			session: this.session,
			turns: [...this.turns.values()],
			messages,
			...from === void 0 ? {} : { from_sequence: from },
			has_more: this.hasMore || isCut
		};
	}
	/** Become the replica that was saved; it counts only after a `replay` or `catchup`. */
	restore(saved) {
		this.stage = "restored";
		this.session = saved.session;
		({epoch: this.epoch, version: this.version, durable: this.durable} = saved.cursor);
		this.hasMore = saved.has_more;
		this.window = new Window(this.sessionId, saved.from_sequence);
		this.window.put(saved.messages);
		this.held = new Turns(saved.turns);
	}
	applyDelta(frame) {
		const change = this.window.append(frame);
		this.version = frame.version;
		this.pages.keep(frame);
		return change ? [change] : [];
	}
	applyChange(frame) {
		const { content, version } = frame;
		const durable = frame.durable ? version : this.durable;
		const steps = this.window.plan(content.messages, {
			version,
			below: this.below(content),
			durable
		});
		this.version = version;
		this.durable = durable;
		this.pages.keep(frame);
		return this.carryOut(steps, content);
	}
	catchUp(payload) {
		if (this.stage === "new" || this.stage === "lost") throw NOTHING;
		const { version, epoch, durable = version, from: since = version } = payload;
		const below = this.below(payload);
		if (version <= this.version) {
			this.stage = "live";
			return IGNORED;
		}
		if (since > this.version) return this.missed(since);
		const steps = this.window.plan(payload.messages, {
			version,
			since,
			below,
			durable
		});
		this.stage = "live";
		Object.assign(this, {
			epoch,
			version,
			durable
		});
		this.pages.restart(version);
		return this.carryOut(steps, payload);
	}
	reset(payload) {
		const { version, epoch, durable = version, session } = payload;
		if (!session) throw NOTHING;
		const window = new Window(this.sessionId, 0);
		const steps = window.plan(payload.messages, {
			version,
			since: 0,
			below: this.below(payload, 0),
			durable
		});
		window.carryOut(steps);
		this.stage = "live";
		this.hasMore = payload.has_more === true;
		Object.assign(this, {
			epoch,
			version,
			durable,
			session
		});
		window.first = this.hasMore ? window.messages()[0]?.sequence : firstOf(session);
		this.window = window;
		this.endOfHistory(session);
		this.held = new Turns(payload.turns);
		this.pages.restart(version);
		return [{ kind: "reset" }];
	}
	carryOut(steps, content) {
		const changes = [];
		const session = this.newer(content.session);
		if (session) {
			this.session = session;
			if (this.window.dropBelow(firstOf(session))) changes.push({ kind: "dropped" });
			this.endOfHistory(session);
		}
		changes.push(...this.window.carryOut(steps), ...this.held.take(content.turns));
		this.held.dropOld(this.window.size, () => new Set([...this.messages().map((message) => message.turn_id), this.session?.running_turn_id]));
		if (session) changes.push({
			kind: "session",
			revision: session.revision
		});
		return changes;
	}
	newer(session) {
		return session && session.revision > (this.session?.revision ?? -1) ? session : void 0;
	}
	judgePage(page) {
		if (!this.session || this.stage !== "live" || page.epoch !== this.epoch || page.include_internal !== this.includeInternal || page.version > this.version) return "again";
		const frames = page.version === this.version ? [] : this.pages.above(page.version);
		if (!frames) return "again";
		const earlier = earlierMessages(page, this.sessionId, this.fromSequence, frames, firstOf(this.session));
		if (typeof earlier === "string") return earlier;
		this.window.join(earlier);
		this.hasMore = page.has_more;
		this.endOfHistory(this.session);
		this.held.take(page.turns);
		return "applied";
	}
	/** Note where nothing is below the window any more, or nothing is left at all. */
	endOfHistory(session) {
		const first = firstOf(session);
		if (this.window.first === void 0 && first > session.message_count) this.window.first = first;
		if (this.window.first !== void 0 && this.window.first <= first) this.hasMore = false;
	}
	/** Below which there is nothing once this content is taken. @throws Misfit where it is of another session */
	below({ session }, held = this.session ? firstOf(this.session) : 0) {
		if (session && session.session_id !== this.sessionId) throw NOTHING;
		return session ? Math.max(held, firstOf(session)) : held;
	}
	missed(reached) {
		return {
			kind: "gap",
			reason: `nothing was received for versions ${this.version + 1} to ${reached}`
		};
	}
	attempt(step) {
		try {
			const changes = step();
			return Array.isArray(changes) ? {
				kind: "applied",
				changes
			} : changes;
		} catch (error) {
			if (!(error instanceof Misfit)) throw error;
			if (error.gap.kind === "restart") this.stage = "lost";
			return error.gap;
		}
	}
};
const NOTHING = restart("there is nothing to go on from; only a reset helps");
//#endregion
//#region src/client/replica.ts
/** Mutations that wait for one reader: a minute of fast streaming. */
const MUTATION_LIMIT = 1e4;
/** A replica that tells its readers what changed, after it changed; only while somebody reads. */
var SessionReplica = class {
	law;
	readers = new Fanout(MUTATION_LIMIT);
	constructor(sessionId, includeInternal) {
		this.law = new Replica(sessionId, includeInternal);
	}
	/** How many messages the window spans at most: removed and internal ones count too. */
	get held() {
		const { session, fromSequence } = this.law;
		return session && fromSequence !== void 0 ? session.message_count - fromSequence + 1 : 0;
	}
	/** A stream of all mutations from now on, of which at most `limit` wait. */
	mutations(limit) {
		return this.readers.reader(limit, () => this.reset("slow"));
	}
	apply(frame) {
		return this.tell(this.law.apply(frame));
	}
	/** Apply the answer to `subscribe`. */
	applySync(payload) {
		return this.tell(this.law.applySync(payload));
	}
	/** Merge a page that `law.expectPage` announced. */
	mergePage(page) {
		const outcome = this.law.mergePage(page);
		if (outcome === "applied" && page.items.length && this.readers.isRead) this.readers.publish(this.reset("loaded"));
		return outcome;
	}
	/** End all streams of mutations. */
	end(error) {
		this.readers.end(error);
	}
	tell(outcome) {
		if (outcome.kind === "applied" && this.readers.isRead) {
			const told = outcome.changes.flatMap((change) => this.told(change));
			for (const [index, item] of told.entries()) this.readers.publish(this.mutation(item, told.length > 1 ? index : void 0));
		}
		return outcome;
	}
	told(change) {
		const { law } = this;
		switch (change.kind) {
			case "appended": {
				const { message_id, part_id, revision, text } = change;
				return [{
					variant: "delta",
					created_at: law.message(message_id)?.updated_at ?? 0,
					revision,
					message_id,
					part_id,
					payload: { text }
				}];
			}
			case "message": return this.toldOfMessage(change);
			case "turn": {
				const turn = law.turns.get(change.turn_id);
				const created_at = turn?.finished_at ?? turn?.phase_since ?? 0;
				return turn ? [{
					variant: "turn",
					created_at,
					revision: change.revision,
					payload: turn
				}] : [];
			}
			case "session": return law.session ? [{
				variant: "session",
				created_at: this.now(),
				revision: change.revision,
				payload: law.session
			}] : [];
			default: return [this.toldReset(change.kind === "reset" ? "synced" : "cleared")];
		}
	}
	toldOfMessage(change) {
		const { message_id, revision, parts } = change;
		const message = this.law.message(message_id);
		if (!message) return [];
		const created_at = message.updated_at;
		if (change.isNew || change.durable || change.lost || !parts.length) return [{
			variant: "message",
			created_at,
			revision,
			message_id,
			payload: message
		}];
		return message.parts.filter((part) => parts.includes(part.sequence)).map((payload) => ({
			variant: "part",
			created_at,
			revision,
			message_id,
			part_id: payload.part_id,
			payload
		}));
	}
	toldReset(reason) {
		return {
			variant: "reset",
			created_at: this.now(),
			revision: this.law.version,
			payload: { reason }
		};
	}
	reset(reason) {
		return this.mutation(this.toldReset(reason), reason);
	}
	mutation(told, suffix) {
		const { epoch, version, sessionId: session_id } = this.law;
		const mutation_id = [
			epoch,
			version,
			suffix
		].filter((piece) => piece !== void 0).join(":");
		return {
			...told,
			mutation_id,
			session_id
		};
	}
	now() {
		return this.law.session?.updated_at ?? 0;
	}
};
//#endregion
//#region src/protocol/sha256.ts
/**
* SHA-256 (FIPS 180-4). The platform's own is asynchronous, and missing in React Native and on pages
* without TLS; a replica must be digested in the middle of the stream, before the next frame comes.
*/
const isPrime = (n) => {
	for (let by = 2; by * by <= n; by++) if (n % by === 0) return false;
	return true;
};
const fraction = (root) => root % 1 * 2 ** 32 | 0;
const primes = [];
for (let n = 2; primes.length < 64; n++) if (isPrime(n)) primes.push(n);
const START = primes.slice(0, 8).map((prime) => fraction(prime ** .5));
const ROUNDS = primes.map((prime) => fraction(Math.cbrt(prime)));
const turned = (word, by) => word >>> by | word << 32 - by;
/** Return the SHA-256 of some bytes, as 64 hex digits. */
function sha256(bytes) {
	const length = bytes.length;
	const padded = new Uint8Array((length + 8 >> 6) + 1 << 6);
	padded.set(bytes);
	padded[length] = 128;
	const view = new DataView(padded.buffer);
	view.setUint32(padded.length - 8, Math.floor(length / 2 ** 29));
	view.setUint32(padded.length - 4, length << 3);
	const state = Int32Array.from(START);
	const words = new Int32Array(64);
	for (let start = 0; start < padded.length; start += 64) block(view, start, words, state);
	return [...state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}
function block(view, start, w, state) {
	for (let i = 0; i < 64; i++) {
		if (i < 16) {
			w[i] = view.getInt32(start + i * 4);
			continue;
		}
		const a = w[i - 15];
		const b = w[i - 2];
		const s0 = turned(a, 7) ^ turned(a, 18) ^ a >>> 3;
		const s1 = turned(b, 17) ^ turned(b, 19) ^ b >>> 10;
		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
	let [a, b, c, d, e, f, g, h] = state;
	for (let i = 0; i < 64; i++) {
		const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
		const first = h + s1 + (e & f ^ ~e & g) + ROUNDS[i] + w[i] | 0;
		const second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + (a & b ^ a & c ^ b & c) | 0;
		[h, g, f, e, d, c, b, a] = [
			g,
			f,
			e,
			d + first | 0,
			c,
			b,
			a,
			first + second | 0
		];
	}
	for (const [i, word] of [
		a,
		b,
		c,
		d,
		e,
		f,
		g,
		h
	].entries()) state[i] = state[i] + word | 0;
}
//#endregion
//#region src/protocol/digest.ts
/** Digests: how a replica proves that it equals the server (SPEC 5.6). */
/** Return the canonical JSON of a value (RFC 8785): keys sorted by UTF-16 units, numbers as ECMAScript writes them. */
function canonical(value) {
	if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
	if (typeof value !== "object" || value === null) return JSON.stringify(value);
	const map = value;
	return `{${Object.keys(map).sort().map((key) => `${JSON.stringify(key)}:${canonical(map[key])}`).join()}}`;
}
/** Return the first 16 hex digits of the SHA-256 of a message as it stands in a page. */
const messageDigest = (message) => sha256(utf8(canonical(message))).slice(0, 16);
//#endregion
//#region src/client/history.ts
/** How often a page that does not fit is read again before the server is held to be at fault. */
const REREADS = 20;
/** Compare messages with the server's digests of the same range, at the same version. */
function differences(messages, digests) {
	const here = new Map(messages.map((one) => [one.sequence, [one.revision, messageDigest(one)]]));
	const there = new Map(digests.map(([sequence, revision, digest]) => [sequence, [revision, digest]]));
	return [...new Set([...here.keys(), ...there.keys()])].sort((a, b) => a - b).map((sequence) => ({
		sequence,
		here: here.get(sequence),
		there: there.get(sequence)
	})).filter(({ here, there }) => here?.join() !== there?.join());
}
var History = class {
	/** `ready` waits until the replica is live, and throws what stands against that. */
	constructor(replica, exchange, ready, onLoaded) {
		this.replica = replica;
		this.exchange = exchange;
		this.ready = ready;
		this.onLoaded = onLoaded;
	}
	/** Extend the window downwards by up to `limit` messages; false where there are none. */
	async loadEarlier(limit) {
		for (let left = REREADS; left; left--) {
			await this.ready();
			if (!this.replica.law.hasMore) return false;
			if (await this.readPage(limit)) {
				this.onLoaded();
				return true;
			}
		}
		throw incompatibleServer("No page of earlier messages fits the replica.");
	}
	/** Compare the window with the server's digests, each page at one and the same version. */
	async verify() {
		const { law } = this.replica;
		const found = [];
		let compared = 0;
		let start = law.fromSequence ?? 1;
		while (law.session && start <= law.session.message_count) {
			const end = Math.min(start + this.exchange.limits.page_messages - 1, law.session.message_count);
			const page = await this.verifyRange(start, end);
			compared += page.compared;
			found.push(...page.differences);
			start = end + 1;
		}
		return {
			isEqual: !found.length,
			compared,
			differences: found
		};
	}
	async verifyRange(start, end) {
		for (let left = REREADS; left; left--) {
			await this.ready();
			const page = await this.verifyPage(start, end);
			if (page) return page;
		}
		throw incompatibleServer("No digests were of the replica's version.");
	}
	/** Read and merge the page before the window; say whether it gave messages. */
	async readPage(limit) {
		const { law } = this.replica;
		let isAwaited = true;
		law.expectPage();
		try {
			const params = {
				session_id: law.sessionId,
				limit: Math.min(limit, this.exchange.limits.page_messages),
				before_sequence: law.fromSequence,
				include_internal: law.includeInternal
			};
			return await this.exchange.ask("messages", params, true, (page) => {
				isAwaited = false;
				return this.replica.mergePage(page) === "applied" && page.items.length > 0;
			});
		} finally {
			if (isAwaited) law.forgetPage();
		}
	}
	/** Compare a range of sequences; undefined where the answer and the replica show different versions. */
	verifyPage(start, end) {
		const { law } = this.replica;
		const params = {
			session_id: law.sessionId,
			from_sequence: start,
			to_sequence: end,
			include_internal: law.includeInternal
		};
		return this.exchange.ask("verify", params, true, ({ epoch, version, digests }) => {
			if (epoch !== law.epoch || version !== law.version) return;
			const here = law.messages().filter(({ sequence }) => start <= sequence && sequence <= end);
			const first = law.fromSequence ?? Number.POSITIVE_INFINITY;
			const there = digests.filter(([sequence]) => sequence >= first);
			return {
				compared: there.length,
				differences: differences(here, there)
			};
		});
	}
};
//#endregion
//#region src/client/outbox.ts
/** The waiting prompts of one session, at most `limit`, the one on its way included. */
var Outbox = class {
	/** In order; a new list after each change. */
	waiting = [];
	isSending = false;
	constructor(sessionId, limit) {
		this.sessionId = sessionId;
		this.limit = limit;
	}
	/** Keep a prompt. @throws MidstreamError `outbox_full` */
	add(prompt) {
		if (this.waiting.length >= this.limit) throw outboxFull(this.sessionId, this.limit);
		this.waiting = [...this.waiting, prompt];
	}
	/** Return the prompt to be sent now, or undefined while one is on its way or none waits. */
	take() {
		const prompt = this.isSending ? void 0 : this.waiting[0];
		this.isSending ||= prompt !== void 0;
		return prompt;
	}
	/** Forget the prompt that was on its way: the server accepted or refused it. */
	answered() {
		this.waiting = this.waiting.slice(1);
		this.isSending = false;
	}
	/** Take back a prompt that was not sent yet; false where it was, or is not here. */
	withdraw(messageId) {
		const kept = this.waiting.filter((prompt, at) => prompt.message_id !== messageId || at === 0 && this.isSending);
		const isGone = kept.length < this.waiting.length;
		if (isGone) this.waiting = kept;
		return isGone;
	}
};
//#endregion
//#region src/client/turns.ts
/** What this client knows of one prompt. Only grows: nothing older replaces anything newer. */
var Progress = class {
	state = "pending";
	position;
	result;
	turnId;
	turn;
	error;
	/** A call is under way to learn more. */
	isAsking = false;
	changed;
	constructor(prompt, later) {
		this.prompt = prompt;
		this.changed = new Changes(later);
	}
	/** Whether nothing more will happen. */
	get isOver() {
		return this.error !== void 0 || ![
			"pending",
			"queued",
			"running"
		].includes(this.state);
	}
	/** Take what the server says of the input. */
	learn(result) {
		this.result = result;
		if (result.state === "cancelled") this.fail(inputCancelled(result.message_id), "cancelled");
		else if (result.turn_id !== void 0) this.took(result.turn_id);
		else if (this.state === "pending") {
			this.state = "queued";
			this.position = result.position;
		}
		this.changed.notify();
	}
	/** Take the turn that the input started, or into which it was absorbed. */
	took(turnId) {
		if (this.turnId === void 0 && !this.isOver) {
			this.turnId = turnId;
			this.position = void 0;
			this.state = "running";
			this.changed.notify();
		}
	}
	/** Take the turn as it is now; an older copy is ignored. */
	follow(turn) {
		if (!this.isOver && turn.revision > (this.turn?.revision ?? -1)) {
			this.turn = turn;
			this.state = turn.state;
			this.changed.notify();
		}
	}
	/** There will be no more news, and why; the state stays where none is given. */
	fail(error, state = this.state) {
		if (!this.isOver) {
			this.error = error;
			this.state = state;
			this.changed.notify();
		}
	}
};
/**
* A prompt that was given to a session, and the turn that takes it. It stays valid over disconnects: what it
* waits for it learns from the replica, or by asking.
*/
var TurnHandle = class {
	constructor(progress, owner) {
		this.progress = progress;
		this.owner = owner;
	}
	/** The id of the prompt, and of the user message it becomes. */
	get messageId() {
		return this.progress.prompt.message_id;
	}
	/** Where the prompt is now, as far as this client knows. */
	get state() {
		return this.progress.state;
	}
	/** The place in the queue, counted from 1, while it is queued and the place is known. */
	get position() {
		return this.progress.position;
	}
	/** The turn that took the prompt, once one did. */
	get turnId() {
		return this.progress.turnId;
	}
	/** That turn, as this client last saw it. */
	get turn() {
		return this.progress.turn;
	}
	/** Why there is no turn to wait for: refused, cancelled, or the session closed here. */
	get error() {
		return this.progress.error;
	}
	/** Call back after each change of what is above; the returned function ends that. */
	subscribe(listener) {
		return this.progress.changed.listen(listener);
	}
	/** Wait until the server has the prompt on disk, and return what it said. */
	accepted(timeoutMs) {
		return this.until("The acceptance of the prompt", () => this.progress.result, timeoutMs);
	}
	/** Wait until a turn has the prompt, and return the turn's id. */
	started(timeoutMs) {
		return this.until("The start of the turn", () => this.turnId, timeoutMs);
	}
	/** Wait until the turn that has the prompt is over, and return it: completed, failed or stopped. */
	finished(timeoutMs) {
		const ended = () => this.turn?.state === "running" ? void 0 : this.turn;
		return this.until("The end of the turn", ended, timeoutMs);
	}
	/** Stop the turn that has the prompt; where none has, take the prompt back. */
	async stop() {
		if (this.turnId === void 0 && !this.progress.isOver) {
			const result = await this.owner.cancelInput(this.messageId);
			if (result.turn_id === void 0) return;
			this.progress.took(result.turn_id);
		}
		if (this.turnId !== void 0) await this.owner.stop(this.turnId);
	}
	until(what, look, timeoutMs) {
		const value = () => {
			const found = look();
			if (found === void 0 && this.error) throw this.error;
			return found;
		};
		return this.progress.changed.until(value, {
			what,
			timeoutMs,
			problem: () => this.owner.problem
		});
	}
};
//#endregion
//#region src/client/prompts.ts
const REPEATABLE = { repeatable: true };
/**
* Sends the prompts of a session, and learns what becomes of them: from the replica where it can, and where
* that cannot tell (the input left the queue unseen, the turn is not among those it holds) by asking.
*/
var Prompts = class {
	outbox;
	followed = /* @__PURE__ */ new Map();
	isLive = false;
	isClosed = false;
	constructor(replica, exchange, keeper, later, onChange, outboxLimit) {
		this.replica = replica;
		this.exchange = exchange;
		this.keeper = keeper;
		this.later = later;
		this.onChange = onChange;
		this.outbox = new Outbox(replica.sessionId, outboxLimit);
	}
	/** Those that the server has not accepted yet, in order; the same list until something changes. */
	get waiting() {
		return this.outbox.waiting;
	}
	/** What is known of a prompt that is followed. */
	progress(messageId) {
		return this.followed.get(messageId);
	}
	/**
	* Take a prompt and follow it; it is sent by `pump`. The same prompt again gives what is known of it.
	*
	* @throws MidstreamError `outbox_full`; `idempotency_conflict`: its id is that of another prompt.
	*/
	add(prompt) {
		const { message_id } = prompt;
		const known = this.followed.get(message_id);
		if (known) {
			if (canonical(known.prompt.parts) !== canonical(prompt.parts)) throw new MidstreamError("idempotency_conflict", `Prompt ${message_id} was made with other content. Give a new message_id.`, {
				field: "message_id",
				id: message_id
			});
			return known;
		}
		this.outbox.add(prompt);
		const progress = new Progress(prompt, this.later);
		this.followed.set(message_id, progress);
		this.onChange();
		return progress;
	}
	/** Send the next prompt, if it is its turn. */
	pump() {
		const prompt = this.isClosed ? void 0 : this.outbox.take();
		const progress = prompt && this.followed.get(prompt.message_id);
		if (prompt && progress) this.exchange.start("prompt", prompt, REPEATABLE, (answer) => this.accepted(progress, answer));
	}
	/** Take back a prompt that was never sent; undefined where that cannot be done here. */
	withdraw(message_id) {
		if (!this.outbox.withdraw(message_id)) return;
		const result = {
			state: "cancelled",
			message_id
		};
		this.followed.get(message_id)?.learn(result);
		this.followed.delete(message_id);
		this.keeper.dropPrompt(message_id);
		this.onChange();
		return result;
	}
	/** Look into the replica for news of the prompts; `synced`: something may have been missed. */
	settle(isLive, synced) {
		this.isLive = isLive;
		if (isLive) for (const progress of [...this.followed.values()]) this.look(progress, synced);
	}
	/** Follow nothing any more; handles get the error. */
	close(error) {
		this.isClosed = true;
		for (const progress of this.followed.values()) progress.fail(error);
		this.followed.clear();
	}
	accepted(progress, answer) {
		if (this.isClosed) return;
		this.outbox.answered();
		this.keeper.dropPrompt(progress.prompt.message_id);
		this.learn(progress, answer);
		this.onChange();
		this.pump();
	}
	/** Take the answer to a prompt, or to its repetition. */
	learn(progress, answer) {
		progress.isAsking = false;
		if (this.isClosed) return;
		if (isError(answer)) progress.fail(answer, progress.state === "pending" ? "refused" : void 0);
		else progress.learn(answer);
		if (this.isLive) this.lookForEnd(progress, false);
		this.dropIfOver(progress);
	}
	look(progress, synced) {
		if (progress.state === "queued") this.lookForStart(progress);
		this.lookForEnd(progress, synced);
		this.dropIfOver(progress);
	}
	dropIfOver(progress) {
		if (progress.isOver) this.followed.delete(progress.prompt.message_id);
	}
	lookForStart(progress) {
		const { message_id } = progress.prompt;
		const place = this.replica.session?.queue?.indexOf(message_id) ?? -1;
		const turnId = this.replica.message(message_id)?.turn_id;
		if (place >= 0) progress.position = place + 1;
		else if (turnId !== void 0) progress.took(turnId);
		else if (!progress.isAsking) {
			progress.isAsking = true;
			this.exchange.start("prompt", progress.prompt, REPEATABLE, (answer) => this.learn(progress, answer));
		}
	}
	lookForEnd(progress, synced) {
		const { turnId } = progress;
		const turn = this.replica.turns.get(turnId ?? "");
		if (turn) progress.follow(turn);
		else if (turnId !== void 0 && !progress.isAsking && (!progress.turn || synced)) {
			progress.isAsking = true;
			const params = {
				session_id: this.replica.sessionId,
				turn_id: turnId
			};
			this.exchange.start("turn", params, REPEATABLE, (answer) => this.askedTurn(progress, answer));
		}
	}
	askedTurn(progress, answer) {
		progress.isAsking = false;
		if (this.isClosed) return;
		if (isError(answer)) progress.fail(answer);
		else if (answer.turn) progress.follow(answer.turn);
		this.dropIfOver(progress);
	}
};
//#endregion
//#region src/client/session.ts
const NO_QUEUE = [];
/** How long the store may take before the session goes on without what it has. */
const STORE_MS = 2e3;
/** How long after a change the replica is stored. */
const SAVE_MS = 1e3;
/**
* One conversation, kept equal to the server's. Get it from `Client.open` or `Client.session`; all who ask
* share it. What is read here is the replica: it is never torn, and while the session is not `live` it is
* what was known last. What did not change stays the same object.
*/
var Session = class {
	sessionId;
	/** Resolves when what the store had of the session is shown. */
	restored;
	signalled = new Fanout();
	prompts;
	history;
	law;
	saving;
	constructor(subscription, tools, keeper, owner) {
		this.subscription = subscription;
		this.tools = tools;
		this.keeper = keeper;
		this.owner = owner;
		const { replica } = subscription;
		this.law = replica.law;
		this.sessionId = this.law.sessionId;
		const { exchange } = tools;
		const later = (ms, callback) => tools.timers.later(ms, callback);
		const notify = () => subscription.changed.notify();
		this.prompts = new Prompts(this.law, exchange, keeper, later, notify, owner.outboxLimit);
		this.history = new History(replica, exchange, () => this.untilLive(exchange.timeoutMs), notify);
		subscription.user = this;
		this.restored = this.restore();
	}
	/** `connecting`, `syncing`, `live`, `offline` or `closed`. */
	get state() {
		return this.subscription.state;
	}
	/** Why the session is closed, where this client did not close it. */
	get error() {
		return this.subscription.error;
	}
	/** What last ended the connection or an attempt, in words; undefined while there is a connection. */
	get problem() {
		return this.tools.exchange.problem;
	}
	get includeInternal() {
		return this.law.includeInternal;
	}
	/** The messages of the window, whole, ascending: the same list until something changes. */
	get messages() {
		return this.law.messages();
	}
	/** Whether there are messages before the first of `messages`; see `loadEarlier`. */
	get hasEarlier() {
		return this.law.hasMore;
	}
	/** The session's own state: title, metadata, counts; undefined before anything was known of it. */
	get info() {
		return this.law.session;
	}
	/** The turn that runs now. */
	get turn() {
		return this.law.runningTurn;
	}
	/** The known turns by id: those of the messages, and the newest 32. */
	get turns() {
		return this.law.turns;
	}
	/** The ids of accepted input that is not in a message yet, in order. */
	get queue() {
		return this.info?.queue ?? NO_QUEUE;
	}
	/** The prompts that the server has not accepted yet, in order: written offline, or on their way. */
	get pending() {
		return this.prompts.waiting;
	}
	/** The version of the session that the replica shows. */
	get version() {
		return this.law.version;
	}
	/** How far the replica has come; undefined before the first sync. */
	get cursor() {
		return this.law.cursor();
	}
	/** Call back after each change of anything that is read here; the returned function ends that. */
	subscribe(listener) {
		return this.subscription.changed.listen(listener);
	}
	/**
	* All that changes from now on, to read with `for await`. At most `limit` mutations wait: a slower reader
	* gets one of variant `reset` in their place, and reads `messages` again; so after a sync that replaced
	* the replica, and after a clear. It ends when the session closes, with its error if any.
	*/
	mutations(limit) {
		return this.subscription.replica.mutations(limit);
	}
	/** The states from now on; a slow reader misses the oldest. */
	states() {
		return this.subscription.states.reader();
	}
	/** The signals (typing, presence) from now on; a slow reader misses the oldest. */
	signals() {
		return this.signalled.reader();
	}
	/**
	* Give the agent input. It is kept here, and in the client's store, until the server has it; then this
	* resolves, or sooner: it does not wait for a connection. Prompts are sent in order, each under its
	* `messageId`, as often as needed; the server takes it once. `handle.accepted()` tells when it is on the
	* server's disk.
	*
	* @throws MidstreamError `outbox_full`, `invalid`, `idempotency_conflict`, or the session is closed.
	*/
	async prompt(content, options = {}) {
		const parts = typeof content === "string" ? [{
			type: "text",
			text: content
		}] : content;
		const { messageId = this.owner.newId("msg"), delivery = "auto" } = options;
		const prompt = {
			session_id: this.sessionId,
			message_id: messageId,
			parts,
			delivery
		};
		const problem = problemIn(prompt, DEFAULT_LIMITS.nesting - 1);
		if (problem) throw problem;
		await this.restored;
		this.checkOpen();
		const progress = this.prompts.add(prompt);
		const kept = this.keeper.keepPrompt(prompt, this.tools.environment.wallMs());
		this.prompts.pump();
		await kept;
		return new TurnHandle(progress, this);
	}
	/** The handle of a prompt that is followed: one of `pending`, say, that was written before a reload. */
	handle(messageId) {
		const progress = this.prompts.progress(messageId);
		return progress && new TurnHandle(progress, this);
	}
	/**
	* Stop a turn, and with it queued input: one's own, all, or none. A turn that is over stays as it is.
	* Without a connection, `current` means the turn that the replica shows: a late stop must not hit another.
	*/
	stop(turnId = "current", cancelQueue = "own") {
		const turn_id = turnId === "current" && this.state !== "live" ? this.turn?.turn_id ?? turnId : turnId;
		return this.ask("stop", {
			turn_id,
			cancel_queue: cancelQueue
		}, turn_id !== "current");
	}
	/** Take a queued prompt back, and return where it is now: one that a turn has stays there. */
	async cancelInput(message_id) {
		return this.prompts.withdraw(message_id) ?? this.ask("cancel_input", { message_id }, true);
	}
	/** What waits for a person's answer, in order of appearance. */
	async interactions() {
		return (await this.ask("interactions", {}, true)).items;
	}
	/** Answer an interaction; the first answer wins. @throws MidstreamError `interaction_closed`, `invalid` */
	async respond(interaction_id, response) {
		return (await this.ask("respond", {
			interaction_id,
			response
		}, true)).interaction;
	}
	approve(interactionId, reason) {
		return this.decide(interactionId, "approved", reason);
	}
	deny(interactionId, reason) {
		return this.decide(interactionId, "denied", reason);
	}
	/** Answer all questions of an interaction: a value, or a list of values, by question id. */
	answer(interactionId, answers) {
		const given = Object.entries(answers).map(([question_id, value]) => ({
			question_id,
			value
		}));
		return this.respond(interactionId, {
			kind: "question",
			answers: given
		});
	}
	/** Extend `messages` backwards by up to `limit` (1 to 200); false where there were none. */
	loadEarlier(limit = 50) {
		return this.history.loadEarlier(limit);
	}
	/** Compare the replica with the server by digests, each page of 200 at one and the same version. */
	verify() {
		return this.history.verify();
	}
	/** Copy the session up to and with a message, or as a whole, and return the copy, synced. */
	async fork(options = {}) {
		const { messageId: message_id, sessionId: new_session_id, title } = options;
		const params = {
			message_id,
			new_session_id,
			key: this.owner.newId("key"),
			title
		};
		const made = await this.ask("sessions.fork", params, true);
		return this.owner.session(made.session.session_id, { includeInternal: this.includeInternal });
	}
	/** Replace the title (null removes it), the metadata, or both. */
	update(changes) {
		return this.change("sessions.update", changes);
	}
	/** Remove all messages. Refused while a turn runs. */
	clear() {
		return this.change("sessions.clear", {});
	}
	/** Archive the session, or take it back. Refused while a turn runs. */
	archive(archived = true) {
		return this.change("sessions.archive", { archived });
	}
	/** Let approvals be asked for (`ask`), or be given at once (`always-allow`), waiting ones too. */
	setApprovalMode(approval_mode) {
		return this.change("sessions.approval_mode", { approval_mode });
	}
	/** Delete the session for everybody, for good; it closes here too. */
	async delete() {
		await this.ask("sessions.delete", {}, false);
		this.subscription.close(sessionClosed(this.sessionId, "deleted"));
	}
	/** Tell the session's other readers something that is not kept; never repeated. */
	async signal(name, data = null) {
		await this.ask("signal", {
			name,
			data
		}, false);
	}
	/** Stop following the session, for all who share this object. It goes on at the server. */
	close() {
		this.save();
		this.subscription.close();
	}
	/** Wait until `condition()` is true; it is asked now, and after each change. */
	until(condition, timeoutMs) {
		return this.wait(condition, "What was waited for", timeoutMs);
	}
	/** Wait until the replica is equal to the server. */
	untilLive(timeoutMs) {
		return this.wait(() => this.state === "live", `The sync of session ${this.sessionId}`, timeoutMs);
	}
	/** Store the replica now: the program may end at any moment. */
	save() {
		this.saving?.();
		this.saving = void 0;
		if (this.law.stage === "live") this.keeper.keepReplica((most) => this.law.save(most));
	}
	onNews(synced) {
		this.prompts.settle(this.state === "live", synced);
		this.saving ??= this.tools.timers.later(SAVE_MS, () => this.save());
	}
	onSignal(signal) {
		this.signalled.publish(signal);
	}
	onClosed(error) {
		this.saving?.();
		if (error?.code === "not_found" || ["deleted", "forbidden"].includes(String(error?.details.reason))) this.keeper.forget(this.pending);
		this.prompts.close(error ?? sessionClosed(this.sessionId, "closed by this client"));
		this.signalled.end(error);
		this.owner.forget(this);
	}
	/** Show what the store has of the session, then let it be brought up to date. */
	async restore() {
		const { timers } = this.tools;
		let cancel;
		const late = new Promise((resolve) => {
			cancel = timers.later(STORE_MS, () => resolve(void 0));
		});
		const kept = await Promise.race([this.keeper.load(), late]);
		cancel?.();
		if (this.state === "closed") return;
		timers.run(() => {
			if (kept?.replica) this.law.restore(kept.replica);
			for (const prompt of kept?.prompts ?? []) this.prompts.add(prompt);
			this.subscription.ready();
			this.prompts.pump();
		});
	}
	decide(id, decision, reason) {
		return this.respond(id, {
			kind: "approval",
			decision,
			...reason === void 0 ? {} : { reason }
		});
	}
	async change(method, params) {
		return (await this.ask(method, params, false)).session;
	}
	async ask(method, params, isRepeatable) {
		this.checkOpen();
		const whole = {
			session_id: this.sessionId,
			...params
		};
		return this.tools.exchange.ask(method, whole, isRepeatable);
	}
	wait(condition, what, timeoutMs) {
		const look = () => {
			if (condition()) return true;
			this.checkOpen();
		};
		const wait = {
			what,
			timeoutMs,
			problem: () => this.problem
		};
		return this.subscription.changed.until(look, wait).then(() => void 0);
	}
	checkOpen() {
		if (this.state === "closed") throw this.error ?? sessionClosed(this.sessionId, "closed by this client");
	}
};
//#endregion
//#region src/client/store.ts
/** A store that lives as long as the program: for tests. */
function memoryStore() {
	const held = /* @__PURE__ */ new Map();
	return {
		read: async (key) => JSON.parse(held.get(key) ?? "null"),
		readAll: async (prefix) => [...held.keys()].filter((key) => key.startsWith(prefix)).sort().map((key) => JSON.parse(held.get(key))),
		write: async (key, value) => {
			held.set(key, JSON.stringify(value));
		},
		remove: async (key) => {
			held.delete(key);
		}
	};
}
/** The form of what is kept; what has another is not read. */
const FORM = 1;
/** Messages of a replica that are kept: a reload shows them at once, and earlier ones are loaded. */
const KEPT_MESSAGES = 200;
/** What a store has of one session. A store that fails costs what it would have kept, and nothing else. */
var Keeper = class {
	replicaKey;
	promptKey;
	kept = "";
	/** What was asked of the store before: a slow write must not come after a later one. */
	last = Promise.resolve();
	constructor(store, place, sessionId, includeInternal, onTrouble) {
		this.store = store;
		this.onTrouble = onTrouble;
		const key = JSON.stringify([place, sessionId]);
		this.replicaKey = `replica ${key}${includeInternal ? " internal" : ""}`;
		this.promptKey = `prompt ${key} `;
	}
	/** Return the replica and the prompts that were kept, as far as there are any. */
	async load() {
		const kept = await this.attempt((store) => store.read(this.replicaKey));
		const inOrder = (await this.attempt((store) => store.readAll(this.promptKey)) ?? []).sort((a, b) => a.at - b.at).map((one) => one.prompt);
		return {
			...kept?.form === FORM ? { replica: kept.replica } : {},
			prompts: inOrder
		};
	}
	/** Keep a prompt; `at` gives its place among the others. Resolves when it is kept. */
	async keepPrompt(prompt, at) {
		await this.attempt((store) => store.write(this.promptKey + prompt.message_id, {
			prompt,
			at
		}));
	}
	dropPrompt(messageId) {
		this.attempt((store) => store.remove(this.promptKey + messageId));
	}
	/** Keep the replica as it is now, unless it is kept already. */
	async keepReplica(save) {
		const replica = this.store && save(KEPT_MESSAGES);
		const place = replica && `${replica.cursor.epoch}:${replica.cursor.version}:${replica.from_sequence}`;
		if (replica && place && place !== this.kept) {
			this.kept = place;
			await this.attempt((store) => store.write(this.replicaKey, {
				form: FORM,
				replica
			}));
		}
	}
	/** Forget the session: it was deleted, or may not be seen any more. */
	forget(prompts) {
		this.attempt((store) => store.remove(this.replicaKey));
		for (const prompt of prompts) this.dropPrompt(prompt.message_id);
	}
	attempt(work) {
		const { store } = this;
		const next = this.last.then(() => store && work(store)).catch((error) => {
			this.onTrouble(error);
		});
		this.last = next;
		return next;
	}
};
//#endregion
//#region src/client/subscription.ts
/** A second gap within this time is not repaired with the cursor again: the copy itself may be wrong. */
const SECOND_GAP_MS = 6e4;
/** So many troubles in a row are met at once; further ones after growing pauses. */
const PATIENCE = 2;
var Subscription = class {
	state = "connecting";
	/** Why it is closed, where nobody asked for it. */
	error;
	/** Told of every frame and every state. */
	changed;
	states = new Fanout();
	user;
	sessionId;
	create;
	isCreating = false;
	isReady = false;
	/** Counts subscriptions: the answer to an earlier one has no effect any more. */
	generation = 0;
	cancelRetry;
	gapAt = Number.NEGATIVE_INFINITY;
	beganWith = 0;
	troubles = 0;
	troubledAt = 0;
	constructor(replica, tools, wish) {
		this.replica = replica;
		this.tools = tools;
		this.wish = wish;
		this.sessionId = replica.law.sessionId;
		this.create = wish.create;
		this.changed = new Changes((ms, callback) => tools.timers.later(ms, callback));
	}
	/** The replica is what the store had of it, if anything: it may be brought up to date. */
	ready() {
		this.isReady = true;
		this.changed.notify();
		if (this.tools.exchange.isConnected) this.connected();
	}
	/** There is a link: subscribe, from where the replica stands. */
	connected() {
		if (this.state !== "closed" && !this.isCreating && this.isReady) this.subscribe();
	}
	/** There is no link. */
	disconnected(state) {
		if (this.state !== "closed") {
			this.beginAnew();
			this.enter(state);
		}
	}
	/** Take a frame of this subscription. */
	frame(frame) {
		const outcome = this.replica.apply(frame);
		if (outcome.kind === "gap" || outcome.kind === "restart") this.gap(outcome.kind);
		else if (frame.tag === "sync" || isNews(outcome)) this.news(frame.tag === "sync");
		if (outcome.kind !== "ignored") this.changed.notify();
	}
	/** The server ended the subscription. */
	ended(frame) {
		if (frame.retryable) this.trouble(false);
		else this.close(sessionClosed(this.sessionId, frame.code));
	}
	/** End, because of an error or because it was asked for. */
	close(error) {
		if (this.state === "closed") return;
		if ((this.state === "live" || this.state === "syncing") && !error) {
			const params = { session_id: this.sessionId };
			this.tools.exchange.start("unsubscribe", params, { repeatable: false }, () => void 0);
		}
		this.beginAnew();
		this.error = error;
		this.enter("closed");
		this.states.end();
		this.replica.end(error);
		this.user?.onClosed(error);
	}
	/** Let nothing that is under way have an effect any more: no frame, no answer, no retry. */
	beginAnew() {
		this.generation++;
		this.tools.router.mute(this);
		this.cancelRetry?.();
		this.cancelRetry = void 0;
	}
	subscribe(isWhole = false) {
		this.beginAnew();
		this.enter("syncing");
		const { generation } = this;
		const { law } = this.replica;
		const params = {
			session_id: this.sessionId,
			cursor: isWhole ? void 0 : law.cursor(),
			limit: Math.min(this.wish.limit, this.tools.exchange.limits.page_messages),
			include_internal: law.includeInternal,
			pace_ms: this.wish.paceMs
		};
		this.tools.exchange.start("subscribe", params, {
			repeatable: false,
			urgent: true
		}, (answer) => {
			if (generation === this.generation) this.answered(answer);
		});
	}
	answered(answer) {
		if (!isError(answer)) {
			this.tools.router.listen(answer.channel, this);
			const outcome = this.replica.applySync(answer.sync);
			if (answer.sync.mode === "reset") this.beganWith = this.replica.held;
			if (outcome.kind === "gap" || outcome.kind === "restart") this.gap(outcome.kind);
			else {
				this.enter("live");
				this.news(true);
			}
		} else if (answer.code === "connection_lost") {} else if (answer.code === "not_found" && this.create) this.createIt(this.create);
		else if (answer.retryable) this.trouble(false, 0);
		else this.close(answer);
	}
	createIt(params) {
		this.create = void 0;
		this.isCreating = true;
		this.tools.exchange.start("sessions.create", params, {
			repeatable: true,
			urgent: true
		}, (answer) => {
			this.isCreating = false;
			if (this.state === "closed") return;
			if (isError(answer) && answer.code !== "already_exists") this.close(answer);
			else this.subscribe();
		});
	}
	gap(kind) {
		const now = this.tools.environment.now();
		const isSecond = now - this.gapAt < SECOND_GAP_MS;
		this.gapAt = now;
		this.trouble(isSecond || kind === "restart");
	}
	/** Subscribe again: at once, or later where that did not help just now. */
	trouble(isWhole, patience = PATIENCE) {
		const { environment, timers } = this.tools;
		const now = environment.now();
		this.troubles = now - this.troubledAt > SECOND_GAP_MS ? 1 : this.troubles + 1;
		this.troubledAt = now;
		if (this.troubles <= patience) {
			this.subscribe(isWhole);
			return;
		}
		this.beginAnew();
		this.enter("syncing");
		const pause = fullJitter(() => environment.random(), this.troubles - patience - 1);
		this.cancelRetry = timers.later(pause, () => this.subscribe(isWhole));
	}
	news(synced) {
		this.user?.onNews(synced);
		const { session } = this.replica.law;
		const isTooMany = this.replica.held > Math.max(this.wish.maxMessages, 2 * this.beganWith);
		if (this.state === "live" && session && session.running_turn_id === void 0 && isTooMany) this.subscribe(true);
	}
	enter(state) {
		if (state !== this.state) {
			this.state = state;
			this.states.publish(state);
		}
		this.changed.notify();
	}
};
/** Whether more than text changed; asked for every frame, so it looks at no more than it must. */
const isNews = (outcome) => outcome.kind === "applied" && outcome.changes.length > 0 && !(outcome.changes.length === 1 && outcome.changes[0]?.kind === "appended");
//#endregion
//#region src/client/client.ts
const TIMEOUT_MS = 3e4;
/**
* Speaks to one server. It connects in the background, at the latest when a session is asked for, and comes
* back by itself until it is closed.
*/
var Client = class {
	outboxLimit;
	hub;
	environment;
	open_ = /* @__PURE__ */ new Map();
	/** `url` begins with `ws://` or `wss://`. */
	constructor(url, options = {}) {
		this.url = url;
		this.options = options;
		if (!/^wss?:\/\//.test(url)) throw new TypeError(`url is '${url}', but must begin with ws:// or wss://`);
		const { encoding = "auto", token = null, maxFrameBytes = MAX_FRAME_BYTES, callTimeoutMs = TIMEOUT_MS } = options;
		this.environment = options.environment ?? systemEnvironment();
		this.outboxLimit = options.outboxLimit ?? 100;
		const link = {
			url,
			encoding,
			token,
			policy: {
				...DEFAULT_POLICY,
				...options.policy
			},
			maxFrameBytes
		};
		this.hub = new Hub(link, this.environment, callTimeoutMs ?? void 0);
		this.hub.onAsleep = () => {
			for (const session of this.open_.values()) session.save();
		};
	}
	/** `connecting`, `live`, `offline` or `closed`. */
	get state() {
		return this.hub.state;
	}
	/** Why the client is closed, where nobody closed it: the server said not to come back, say. */
	get error() {
		return this.hub.error;
	}
	/** What last ended the connection or an attempt, in words; undefined while there is a connection. */
	get problem() {
		return this.hub.exchange.problem;
	}
	/** What the server last said of itself and of this connection. */
	get welcome() {
		return this.hub.welcome;
	}
	/** Call back after each change of the state; the returned function ends that. */
	subscribe(listener) {
		return this.hub.changed.listen(listener);
	}
	/** The states from now on; a slow reader misses the oldest. */
	states() {
		return this.hub.states.reader();
	}
	/** Begin to connect; does not wait for it. @throws MidstreamError it is closed. */
	connect() {
		this.hub.begin();
	}
	/**
	* Return the session at once: with a store it shows what was known last, and is then brought up to date.
	* The same object for all who ask for its id.
	*/
	open(sessionId, options = {}) {
		this.hub.begin();
		const { includeInternal = false } = options;
		const session = this.open_.get(sessionId) ?? this.make(sessionId, options);
		if (session.includeInternal !== includeInternal) throw new TypeError(`Session '${sessionId}' is open without includeInternal: ${includeInternal}. Close it first.`);
		return session;
	}
	/** Return the session when it is equal to the server's. @throws MidstreamError `timed_out`, `not_found`, ... */
	async session(sessionId, options = {}) {
		const session = this.open(sessionId, options);
		await session.untilLive(options.timeoutMs ?? TIMEOUT_MS);
		return session;
	}
	/** Create a session without opening it. The same `key` with the same content gives the same session. */
	async create(options = {}) {
		this.hub.begin();
		const { sessionId: session_id, title, metadata, key = this.newId("key") } = options;
		const params = {
			session_id,
			key,
			title,
			metadata
		};
		return (await this.hub.exchange.ask("sessions.create", params, true)).session;
	}
	/** Return up to `limit` sessions, the last changed first; `archived` gives those instead. */
	async sessions(limit = 50, archived = false) {
		this.hub.begin();
		const { exchange } = this.hub;
		const found = [];
		let after;
		do {
			const page = Math.min(limit - found.length, exchange.limits.page_messages);
			const result = await exchange.ask("sessions.list", {
				limit: page,
				after,
				archived
			}, true);
			found.push(...result.items);
			after = result.next_after;
		} while (after !== void 0 && found.length < limit);
		return found;
	}
	/** Close the connection and all sessions. */
	close() {
		this.hub.onAsleep();
		this.hub.close();
	}
	/** Forget a session that is closed: the next who asks for it gets a new one. */
	forget(session) {
		if (this.open_.get(session.sessionId) === session) {
			this.open_.delete(session.sessionId);
			this.hub.remove(session.sessionId);
		}
	}
	/** A random id, which no other client makes. */
	newId(kind) {
		return `${kind}_${[
			1,
			2,
			3,
			4
		].map(() => Math.floor(this.environment.random() * 2 ** 32).toString(36)).join("")}`;
	}
	make(sessionId, options) {
		const { limit = 50, paceMs, includeInternal = false } = options;
		const { store, storePlace = this.url, maxMessages = 1e4, onTrouble = () => void 0 } = this.options;
		const wish = {
			limit,
			paceMs,
			maxMessages,
			create: options.create ? {
				session_id: sessionId,
				key: this.newId("key")
			} : void 0
		};
		const subscription = new Subscription(new SessionReplica(sessionId, includeInternal), this.hub.tools, wish);
		const keeper = new Keeper(store, storePlace, sessionId, includeInternal, onTrouble);
		this.hub.add(subscription, sessionId);
		const session = new Session(subscription, this.hub.tools, keeper, this);
		this.open_.set(sessionId, session);
		return session;
	}
};
//#endregion
export { Client, DEFAULT_POLICY, JSON_CODEC, MidstreamError, canonical, loadMsgpack, memoryStore, messageDigest, systemEnvironment };
