"""Frames that a server must refuse, each with what it must answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

from midstream.protocol.codec import Codec

Map = dict[str, Any]
S = {"session_id": "s"}
TEXT = {"type": "text", "text": "x"}
BIG = 2**53
CALL_ID = 7
INTERACTION = "the pending interaction"
APPROVED = {"kind": "approval", "decision": "approved"}


@dataclass(frozen=True, kw_only=True)
class Bad:
    """One bad message.

    ``frame`` is encoded as the connection does; ``msgpack`` and ``json`` are messages as they stand, for one
    encoding only. ``INTERACTION`` stands for the id of the interaction that is pending.
    """

    name: str
    frame: list[Any] | None = None
    msgpack: bytes | None = None
    json: str | None = None
    code: str
    details: Map = field(default_factory=Map)
    at: str = ""
    """How the field begins; one that lies deep is shortened."""
    closes: int | None = None

    @property
    def call_id(self) -> int | None:
        """The id that the error must have: that of a call whose id can be read."""
        if self.frame is None:
            return None if self.closes else CALL_ID
        head = self.frame[:2]
        return CALL_ID if head == ["call", CALL_ID] else None

    def can_be_said_in(self, codec: Codec) -> bool:
        """Say whether an encoding can express it at all."""
        return self.frame is not None or (self.msgpack if codec.binary else self.json) is not None

    def message(self, codec: Codec, interaction_id: str) -> bytes | str:
        """Return it as a WebSocket message of an encoding that can express it."""
        if self.frame is None:
            message = self.msgpack if codec.binary else self.json
            assert message is not None
            return message
        data = codec.encode(_named(self.frame, interaction_id))
        return data if codec.binary else data.decode()


def _named(frame: list[Any], interaction_id: str) -> list[Any]:
    params = frame[-1]
    if isinstance(params, dict) and INTERACTION in cast("Map", params).values():
        return [*frame[:-1], {**params, "interaction_id": interaction_id}]
    return frame


def call(name: str, method: str, params: object, code: str = "invalid", /, **details: object) -> Bad:
    """Return a bad call."""
    return Bad(name=name, frame=["call", 7, method, params], code=code, details=details)


def prompt(name: str, at: str, *parts: object, **more: object) -> Bad:
    """Return a prompt whose field is wrong."""
    return call(name, "prompt", {**S, "message_id": "new", "parts": list(parts), **more}, field=at)


def nested(levels: int) -> list[Any]:
    """Return lists in lists."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def update(name: str, at: str, metadata: object) -> Bad:
    """Return an update whose metadata have a value that the protocol does not carry."""
    return call(name, "sessions.update", {**S, "metadata": metadata}, field=at)


def raw(name: str, json: str, msgpack: bytes, code: str = "invalid", **details: object) -> Bad:
    """Return a message that no encoder makes: the tail of a call after `["call", 7, "sessions.update", `."""
    head = b"\x94\xa4call\x07\xafsessions.update"
    return Bad(
        name=name,
        json='["call",7,"sessions.update",' + json,
        msgpack=head + msgpack,
        code=code,
        details=details,
    )


def broken(name: str, *, json: str | None = None, msgpack: bytes | None = None) -> Bad:
    """Return broken framing."""
    return Bad(name=name, json=json, msgpack=msgpack, code="malformed", closes=4500)


FRAMING = [
    broken("an empty message", json="", msgpack=b""),
    broken("a frame that is cut off", json='["call",7,"turn",{"sess', msgpack=b"\x94\xa4call\x07\xa4tu"),
    broken("an unused code", json="[nope]", msgpack=b"\xc1"),
    broken("a map", json='{"call":7}', msgpack=b"\x81\xa4call\x07"),
    broken("a number", json="7", msgpack=b"\x07"),
    broken("an empty array", json="[]", msgpack=b"\x90"),
    broken("a tag that is no string", json='[7,"call"]', msgpack=b"\x92\x07\xa4call"),
    broken("two frames in one", json='["ping",1]["ping",2]', msgpack=b"\x92\xa4ping\x01\x92\xa4ping\x02"),
    broken("100,000 levels of nothing", json="[" * 100_000, msgpack=b"\x91" * 100_000),
    broken("a promise of 4 GB", msgpack=b"\xdd\xff\xff\xff\xff\xa4call"),
    broken(
        "a chunk whose piece is a number", json='["chunk",1,true,7]', msgpack=b"\x94\xa5chunk\x01\xc3\x07"
    ),
]
FRAMES = [
    Bad(name="an unknown tag", frame=["shout", 1], code="unknown_frame", details={"tag": "shout"}),
    Bad(name="a server's tag", frame=["welcome", {}], code="unknown_frame", details={"tag": "welcome"}),
    Bad(name="a second hello", frame=["hello", 1, None, {}], code="invalid", details={"field": "tag"}),
    Bad(name="a negative nonce", frame=["ping", -1], code="invalid", details={"field": "nonce"}),
    Bad(
        name="an id that is a string", frame=["call", "7", "turn", S], code="invalid", details={"field": "id"}
    ),
    Bad(
        name="an id that is negative", frame=["call", -7, "turn", S], code="invalid", details={"field": "id"}
    ),
    Bad(name="an id past 2^53-1", frame=["call", BIG, "turn", S], code="invalid", details={"field": "id"}),
    Bad(name="a call without params", frame=["call", 7, "turn"], code="invalid", details={"field": "params"}),
    Bad(
        name="a method that is a number", frame=["call", 7, 7, S], code="invalid", details={"field": "method"}
    ),
    Bad(
        name="too long a frame",
        frame=["x" * 1_050_000],
        code="limit_exceeded",
        details={"limit": "frame_bytes"},
    ),
    call("an unknown method", "shout", S, "unknown_method", method="shout"),
    call("params that are a list", "turn", ["s"], field="params"),
    call("params that are null", "turn", None, field="params"),
]
VALUES = [
    replace(call("65 levels of nesting", "signal", {**S, "name": "n", "data": nested(63)}), at="data[0][0]"),
    update("an integer past 2^53-1", "metadata.n", {"n": BIG}),
    update("an integer below -(2^53-1)", "metadata.a[1]", {"a": [0, -BIG]}),
    raw(
        "not a number",
        '{"session_id":"s","metadata":{"n":NaN}}]',
        b"\x82\xaasession_id\xa1s\xa8metadata\x81\xa1n\xcb\x7f\xf8\0\0\0\0\0\0",
        field="metadata.n",
    ),
    raw(
        "infinity",
        '{"session_id":"s","metadata":{"n":1e999}}]',
        b"\x82\xaasession_id\xa1s\xa8metadata\x81\xa1n\xcb\x7f\xf0\0\0\0\0\0\0",
        field="metadata.n",
    ),
    raw(
        "a key twice",
        '{"session_id":"s","title":"a","title":"b"}]',
        b"\x83\xaasession_id\xa1s\xa5title\xa1a\xa5title\xa1b",
        field="title",
    ),
    raw(
        "a key twice, inside",
        '{"session_id":"s","metadata":{"k":1,"k":1}}]',
        b"\x82\xaasession_id\xa1s\xa8metadata\x82\xa1k\x01\xa1k\x01",
        field="metadata.k",
    ),
    raw(
        "a lone surrogate",
        '{"session_id":"s","title":"\\ud800"}]',
        b"\x82\xaasession_id\xa1s\xa5title\xa3\xed\xa0\x80",
        field="title",
    ),
    Bad(
        name="bytes",
        msgpack=b"\x94\xa4call\x07\xafsessions.update\x82\xaasession_id\xa1s\xa8metadata\x81\xa1b\xc4\x01x",
        code="invalid",
        details={"field": "metadata.b"},
    ),
    Bad(
        name="an extension",
        msgpack=b"\x94\xa4call\x07\xafsessions.update\x82\xaasession_id\xa1s\xa8metadata\x81\xa1e\xd4\x01x",
        code="invalid",
        details={"field": "metadata.e"},
    ),
    Bad(
        name="a key that is no string",
        msgpack=b"\x94\xa4call\x07\xafsessions.update\x82\xaasession_id\xa1s\xa8metadata\x81\x07\x01",
        code="invalid",
        details={"field": "metadata"},
    ),
    Bad(
        name="a string that is no UTF-8",
        msgpack=b"\x94\xa4call\x07\xafsessions.update\x82\xaasession_id\xa1s\xa5title\xa1\xff",
        code="invalid",
        details={"field": "title"},
    ),
    raw(
        "100,000 levels",
        "[" * 100_000 + "]" * 100_000 + "]",
        b"\x91" * 99_999 + b"\x90",
    ),
]
READING = [
    call("an unknown session", "messages", {"session_id": "other"}, "not_found", kind="session", id="other"),
    call("no session", "messages", {}, field="session_id"),
    call("a session that is a number", "messages", {"session_id": 7}, field="session_id"),
    call("an empty session id", "messages", {"session_id": ""}, field="session_id"),
    call("a session id of 129 characters", "messages", {"session_id": "x" * 129}, field="session_id"),
    call(
        "a session id of 256 bytes",
        "messages",
        {"session_id": "é" * 128},
        "limit_exceeded",
        limit="session_id_bytes",
        maximum=128,
        actual=256,
    ),
    call("page limit 0", "messages", {**S, "limit": 0}, field="limit"),
    call("page limit 201", "messages", {**S, "limit": 201}, field="limit"),
    call("a limit that is a string", "messages", {**S, "limit": "50"}, field="limit"),
    call("a limit that is half", "messages", {**S, "limit": 0.5}, field="limit"),
    call("a negative sequence", "messages", {**S, "before_sequence": -1}, field="before_sequence"),
    call("sequence 0", "messages", {**S, "before_sequence": 0}, field="before_sequence"),
    call("a view that is a string", "messages", {**S, "include_internal": "yes"}, field="include_internal"),
    call("an unknown message", "message", {**S, "message_id": "no"}, "not_found", kind="message", id="no"),
    call("an unknown turn", "turn", {**S, "turn_id": "no"}, "not_found", kind="turn", id="no"),
    call("verify from 0", "verify", {**S, "from_sequence": 0, "to_sequence": 1}, field="from_sequence"),
    call("verify backwards", "verify", {**S, "from_sequence": 2, "to_sequence": 1}, field="to_sequence"),
    call(
        "verify of 201",
        "verify",
        {**S, "from_sequence": 1, "to_sequence": 201},
        "limit_exceeded",
        limit="page_messages",
    ),
    call("subscribe with limit 0", "subscribe", {**S, "limit": 0}, field="limit"),
    call("subscribe at a pace of 19 ms", "subscribe", {**S, "pace_ms": 19}, field="pace_ms"),
    call("subscribe at a pace of 501 ms", "subscribe", {**S, "pace_ms": 501}, field="pace_ms"),
    call(
        "a cursor with a negative version",
        "subscribe",
        {**S, "cursor": {"epoch": "e", "version": -1, "durable": 0}},
        field="cursor.version",
    ),
    call(
        "a cursor without durable",
        "subscribe",
        {**S, "cursor": {"epoch": "e", "version": 1}},
        field="cursor.durable",
    ),
    call("a cursor that is a number", "subscribe", {**S, "cursor": 7}, field="cursor"),
    call("list after what is no place", "sessions.list", {"after": "?"}, field="after"),
]
WRITING = [
    prompt("a prompt without parts", "parts"),
    prompt("a prompt of blanks", "parts", {"type": "text", "text": " \n"}),
    call("a prompt that has no parts at all", "prompt", {**S, "message_id": "new"}, field="parts"),
    call("parts that are a text", "prompt", {**S, "message_id": "new", "parts": "x"}, field="parts"),
    call("a prompt without id", "prompt", {**S, "parts": [TEXT]}, field="message_id"),
    call("an empty message id", "prompt", {**S, "message_id": "", "parts": [TEXT]}, field="message_id"),
    prompt("a part of no type", "parts[0].type", {"text": "x"}),
    prompt("a part of an unknown type", "parts[1].type", TEXT, {"type": "video", "url": "x"}),
    prompt("a part of an agent", "parts[0].type", {"type": "reasoning", "text": "x", "state": "done"}),
    prompt("a text that is a number", "parts[0].text", {"type": "text", "text": 7}),
    prompt("a text with a state", "parts[0].state", {**TEXT, "state": "done"}),
    prompt("a text that is missing", "parts[0].text", {"type": "text"}),
    prompt("a tag with a space", "parts[0].tag", {"type": "context", "tag": "a b", "context": "x"}),
    prompt("a file without media type", "parts[0].media_type", {"type": "file", "url": "data:,x"}),
    prompt("a part id twice", "parts[1].part_id", {**TEXT, "part_id": "p"}, {**TEXT, "part_id": "p"}),
    prompt("an unknown delivery", "delivery", TEXT, delivery="now"),
    call(
        "an id with other content",
        "prompt",
        {**S, "message_id": "m1", "parts": [{"type": "text", "text": "other"}]},
        "idempotency_conflict",
        field="message_id",
        id="m1",
    ),
    call(
        "a prompt to an unknown session",
        "prompt",
        {"session_id": "other", "message_id": "n", "parts": [TEXT]},
        "not_found",
    ),
    call(
        "a prompt that must not wait",
        "prompt",
        {**S, "message_id": "n", "parts": [TEXT], "delivery": "reject"},
        "refused",
        reason="turn_running",
    ),
    call("a stop of what is a number", "stop", {**S, "turn_id": 7}, field="turn_id"),
    call("a stop with an unknown word", "stop", {**S, "cancel_queue": "some"}, field="cancel_queue"),
    call("an unknown input", "cancel_input", {**S, "message_id": "no"}, "not_found", kind="input", id="no"),
    call(
        "an unknown interaction",
        "respond",
        {**S, "interaction_id": "no", "response": APPROVED},
        "not_found",
        kind="interaction",
        id="no",
    ),
    call(
        "a response of another kind",
        "respond",
        {**S, "interaction_id": INTERACTION, "response": {"kind": "question", "answers": []}},
        field="response.kind",
    ),
    call(
        "a response of no kind",
        "respond",
        {**S, "interaction_id": INTERACTION, "response": {"decision": "approved"}},
        field="response.kind",
    ),
    call(
        "an unknown decision",
        "respond",
        {**S, "interaction_id": INTERACTION, "response": {**APPROVED, "decision": "maybe"}},
        field="response.decision",
    ),
    call("a session that there is", "sessions.create", {**S}, "already_exists", id="s"),
    call(
        "a title that is too long",
        "sessions.update",
        {**S, "title": "x" * 1_025},
        "limit_exceeded",
        limit="title_bytes",
    ),
    call(
        "metadata that are too long",
        "sessions.update",
        {**S, "metadata": {"x": "x" * 16_384}},
        "limit_exceeded",
        limit="metadata_bytes",
    ),
    call("metadata that are a list", "sessions.update", {**S, "metadata": []}, field="metadata"),
    call(
        "a signal that is too long",
        "signal",
        {**S, "name": "n", "data": "x" * 4_097},
        "limit_exceeded",
        limit="signal_bytes",
    ),
    call("a signal without a name", "signal", {**S, "name": ""}, field="name"),
    call("a clear in a turn", "sessions.clear", S, "refused", reason="turn_running"),
    call("an archive in a turn", "sessions.archive", S, "refused", reason="turn_running"),
    call(
        "a fork at an unknown message",
        "sessions.fork",
        {**S, "message_id": "no"},
        "not_found",
        kind="message",
        id="no",
    ),
]
CASES = [*FRAMING, *FRAMES, *VALUES, *READING, *WRITING]
