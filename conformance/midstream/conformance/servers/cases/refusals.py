"""What is refused, by which error, and that it changes nothing (SPEC 2.1, 7, 11.1; G16, G21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from midstream.conformance.case import Case
from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.judging import check_error
from midstream.conformance.servers.peer import Peer
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE
from midstream.protocol.codec import CODECS

case = SUITE.case
TEXT = {"type": "text", "text": "x"}
HERE = "the session"
"""Stands for the id of the case's session."""


@dataclass(frozen=True)
class Bad:
    """A call that must be refused: its name, method, params, and the error with its details."""

    name: str
    method: str
    params: Map
    code: str
    details: Map
    section: str


def _bad(name: str, method: str, params: Map, field: str, section: str = "7") -> Bad:
    return Bad(name, method, params, "invalid", {"field": field}, section)


def _prompt(name: str, field: str, *parts: object, **more: object) -> Bad:
    params = {"session_id": HERE, "message_id": "new", "parts": list(parts), **more}
    return Bad(f"prompt-{name}", "prompt", params, "invalid", {"field": field}, "7.6")


def _value(name: str, field: str, metadata: Map) -> Bad:
    params = {"session_id": HERE, "metadata": metadata}
    return Bad(f"value-{name}", "sessions.update", params, "invalid", {"field": field}, "2.1")


def _gone(name: str, method: str, kind: str, section: str, **params: object) -> Bad:
    id = params.get(f"{kind}_id") or params.get("message_id")
    return Bad(name, method, {"session_id": HERE, **params}, "not_found", {"kind": kind, "id": id}, section)


S: Map = {"session_id": HERE}
BIG = 2**53
APPROVED = {"kind": "approval", "decision": "approved"}
UNKNOWN_SESSION: list[tuple[str, Map | None]] = [
    ("subscribe", {}), ("unsubscribe", None), ("messages", {}), ("message", {"message_id": "m"}), ("turn", {}),
    ("prompt", {"message_id": "m", "parts": [TEXT]}), ("stop", {}),
    ("respond", {"interaction_id": "i", "response": APPROVED}), ("interactions", {}),
    ("cancel_input", {"message_id": "m"}), ("sessions.get", {}), ("sessions.clear", {}), ("sessions.delete", {}),
    ("sessions.update", {"title": "t"}), ("sessions.archive", {}),
    ("sessions.approval_mode", {"approval_mode": "ask"}), ("sessions.fork", {}),
    ("verify", {"from_sequence": 1, "to_sequence": 1}), ("signal", {"name": "n"}),
    ("compact", {"through_sequence": 1, "summary": "s"}),
]  # fmt: skip
"""Calls on a session, with the least that they need besides it."""

BADS = [
    Bad("unknown-method", "shout", S, "unknown_method", {"method": "shout"}, "3.2"),
    _bad("no-session", "messages", {}, "session_id"),
    _bad("session-number", "messages", {"session_id": 7}, "session_id"),
    _bad("session-empty", "messages", {"session_id": ""}, "session_id"),
    _bad("session-129-characters", "messages", {"session_id": "x" * 129}, "session_id"),
    _bad("limit-0", "messages", {**S, "limit": 0}, "limit", "7.3"),
    _bad("limit-201", "messages", {**S, "limit": 201}, "limit", "7.3"),
    _bad("limit-string", "messages", {**S, "limit": "50"}, "limit", "7.3"),
    _bad("limit-half", "messages", {**S, "limit": 0.5}, "limit", "7.3"),
    _bad("before-0", "messages", {**S, "before_sequence": 0}, "before_sequence", "7.3"),
    _bad("before-negative", "messages", {**S, "before_sequence": -1}, "before_sequence", "7.3"),
    _bad("view-string", "messages", {**S, "include_internal": "yes"}, "include_internal", "7.3"),
    _bad("verify-0", "verify", {**S, "from_sequence": 0, "to_sequence": 1}, "from_sequence", "7.12"),
    _bad("verify-backwards", "verify", {**S, "from_sequence": 2, "to_sequence": 1}, "to_sequence", "7.12"),
    _bad("subscribe-limit-0", "subscribe", {**S, "limit": 0}, "limit", "7.1"),
    _bad("subscribe-limit-201", "subscribe", {**S, "limit": 201}, "limit", "7.1"),
    _bad("pace-19", "subscribe", {**S, "pace_ms": 19}, "pace_ms", "7.1"),
    _bad("pace-501", "subscribe", {**S, "pace_ms": 501}, "pace_ms", "7.1"),
    _bad("cursor-number", "subscribe", {**S, "cursor": 7}, "cursor", "7.1"),
    _bad(
        "cursor-negative",
        "subscribe",
        {**S, "cursor": {"epoch": "e", "version": -1, "durable": 0}},
        "cursor.version",
        "7.1",
    ),
    _bad(
        "cursor-without-durable",
        "subscribe",
        {**S, "cursor": {"epoch": "e", "version": 1}},
        "cursor.durable",
        "7.1",
    ),
    _bad("cursor-null", "subscribe", {**S, "cursor": None}, "cursor", "2.1"),
    _bad("list-after-nothing", "sessions.list", {"after": "?"}, "after", "7.11"),
    _bad("list-limit-0", "sessions.list", {"limit": 0}, "limit", "7.11"),
    _bad("watch-limit-201", "sessions.watch", {"limit": 201}, "limit", "7.11"),
    _prompt("no-part", "parts"),
    _prompt("blank", "parts", {"type": "text", "text": " \n"}),
    _prompt("no-type", "parts[0].type", {"text": "x"}),
    _prompt("unknown-type", "parts[1].type", TEXT, {"type": "video", "url": "x"}),
    _prompt("part-of-an-agent", "parts[0].type", {"type": "reasoning", "text": "x", "state": "done"}),
    _prompt("text-number", "parts[0].text", {"type": "text", "text": 7}),
    _prompt("text-missing", "parts[0].text", {"type": "text"}),
    _prompt("text-state", "parts[0].state", {**TEXT, "state": "done"}),
    _prompt("tag-with-space", "parts[0].tag", {"type": "context", "tag": "a b", "context": "x"}),
    _prompt("file-without-media-type", "parts[0].media_type", {"type": "file", "url": "data:,x"}),
    _prompt("part-id-twice", "parts[1].part_id", {**TEXT, "part_id": "p"}, {**TEXT, "part_id": "p"}),
    _prompt("delivery", "delivery", TEXT, delivery="now"),
    _bad("prompt-without-id", "prompt", {**S, "parts": [TEXT]}, "message_id", "7.6"),
    _bad("prompt-empty-id", "prompt", {**S, "message_id": "", "parts": [TEXT]}, "message_id", "7.6"),
    _bad("prompt-text-for-parts", "prompt", {**S, "message_id": "n", "parts": "x"}, "parts", "7.6"),
    _bad("stop-number", "stop", {**S, "turn_id": 7}, "turn_id", "7.7"),
    _bad("stop-some", "stop", {**S, "cancel_queue": "some"}, "cancel_queue", "7.7"),
    _bad(
        "response-of-no-kind",
        "respond",
        {**S, "interaction_id": "i", "response": {"decision": "approved"}},
        "response.kind",
        "7.8",
    ),
    _bad(
        "approval-mode-word",
        "sessions.approval_mode",
        {**S, "approval_mode": "never"},
        "approval_mode",
        "7.11",
    ),
    _bad("metadata-list", "sessions.update", {**S, "metadata": []}, "metadata", "7.11"),
    _bad("signal-without-name", "signal", {**S, "name": ""}, "name", "7.13"),
    _bad("signal-name-65", "signal", {**S, "name": "n" * 65}, "name", "7.13"),
    _bad("summary-blank", "compact", {**S, "through_sequence": 1, "summary": " "}, "summary", "7.15"),
    _bad(
        "summary-of-nothing",
        "compact",
        {**S, "through_sequence": 99, "summary": "s"},
        "through_sequence",
        "7.15",
    ),
    _value("integer-too-great", "metadata.n", {"n": BIG}),
    _value("integer-too-small", "metadata.a[1]", {"a": [0, -BIG]}),
    _gone("unknown-message", "message", "message", "7.4", message_id="no"),
    _gone("unknown-turn", "turn", "turn", "7.5", turn_id="no"),
    _gone("unknown-input", "cancel_input", "input", "7.10", message_id="no"),
    _gone("unknown-interaction", "respond", "interaction", "7.8", interaction_id="no", response=APPROVED),
    _gone("fork-at-unknown-message", "sessions.fork", "message", "7.11", message_id="no"),
    Bad("session-taken", "sessions.create", S, "already_exists", {"id": HERE}, "7.11"),
    Bad(
        "message-id-of-another",
        "prompt",
        {**S, "message_id": "m1", "parts": [TEXT]},
        "idempotency_conflict",
        {"field": "message_id", "id": "m1"},
        "7.6",
    ),
]
"""Calls that must be refused, on a session with one message ``m1``."""


async def _state(peer: Peer, session_id: str) -> list[Any]:
    page = await peer.call("messages", session_id=session_id, include_internal=True)
    session = await peer.call("sessions.get", session_id=session_id)
    return [page["items"], page["version"], session]


async def _stage(scene: Scene, peer: Peer) -> str:
    """Make a session that stands still: with a turn that nobody ends, or an archived one where others run turns."""
    session_id = await scene.session(peer, title="stays")
    started = await peer.call(
        "prompt", session_id=session_id, message_id="m1", parts=[{"type": "text", "text": "first"}]
    )
    await peer.call("stop", session_id=session_id, turn_id=started["turn_id"])
    return session_id


def _named(value: Any, session_id: str) -> Any:  # noqa: ANN401  # values of the protocol
    if isinstance(value, dict):
        return {key: _named(one, session_id) for key, one in cast("Map", value).items()}
    return session_id if value == HERE else value


def _case(bad: Bad) -> Case[Scene]:
    async def run(scene: Scene) -> None:
        for codec in CODECS.values():
            peer = await scene.open(codec)
            session_id = await _stage(scene, peer)
            reader = await scene.follow(peer, session_id)
            before = await _state(peer, session_id)
            await peer.refused(
                bad.code, bad.method, _named(bad.params, session_id), **_named(bad.details, session_id)
            )
            if bad.method == "subscribe":
                peer.subscriptions.clear()
            else:
                expect("G16: a refused call shows nothing to those who watch", reader.tags(), [])
            expect("G16: a refused call changes nothing", await _state(peer, session_id), before)

    title = f"{bad.method} ({bad.name.replace('-', ' ')}) is refused as {bad.code}, and changes nothing."
    return Case(id=f"refusals.{bad.name}", title=title, section=bad.section, guarantees=("G16",), run=run)


for _one in BADS:
    SUITE.add(_case(_one))

RAW: list[tuple[str, bytes | None, str | None, str]] = [
    (
        "nan",
        b"\x82\xaasession_id\xa1s\xa8metadata\x81\xa1n\xcb\x7f\xf8\0\0\0\0\0\0",
        '{"session_id":"s","metadata":{"n":NaN}}]',
        "metadata.n",
    ),
    (
        "infinity",
        b"\x82\xaasession_id\xa1s\xa8metadata\x81\xa1n\xcb\x7f\xf0\0\0\0\0\0\0",
        '{"session_id":"s","metadata":{"n":1e999}}]',
        "metadata.n",
    ),
    (
        "key-twice",
        b"\x83\xaasession_id\xa1s\xa5title\xa1a\xa5title\xa1b",
        '{"session_id":"s","title":"a","title":"b"}]',
        "title",
    ),
    (
        "key-twice-inside",
        b"\x82\xaasession_id\xa1s\xa8metadata\x82\xa1k\x01\xa1k\x01",
        '{"session_id":"s","metadata":{"k":1,"k":1}}]',
        "metadata.k",
    ),
    (
        "lone-surrogate",
        b"\x82\xaasession_id\xa1s\xa5title\xa3\xed\xa0\x80",
        '{"session_id":"s","title":"\\ud800"}]',
        "title",
    ),
    ("bin", b"\x82\xaasession_id\xa1s\xa8metadata\x81\xa1b\xc4\x01x", None, "metadata.b"),
    ("ext", b"\x82\xaasession_id\xa1s\xa8metadata\x81\xa1e\xd4\x01x", None, "metadata.e"),
    ("not-utf-8", b"\x82\xaasession_id\xa1s\xa5title\xa1\xff", None, "title"),
]
"""Params of `sessions.update` that no encoder makes: name, msgpack, JSON, and the field at fault."""


def _raw(name: str, packed: bytes | None, text: str | None, field: str) -> Case[Scene]:
    async def run(scene: Scene) -> None:
        for codec in CODECS.values():
            tail = packed if codec.binary else text
            if tail is None:
                continue
            peer = await scene.open(codec)
            peer.expect_answer(7, "sessions.update")
            message: bytes | str
            if isinstance(tail, bytes):
                message = b"\x94\xa4call\x07\xafsessions.update" + tail
            else:
                message = '["call",7,"sessions.update",' + tail
            await peer.send_raw(message)
            frame = await peer.until(lambda one: one.tag in {"error", "result"}, "an error")
            is_framing = (
                frame.tag == "error" and frame.plain[1] is None and frame.plain[2]["code"] == "malformed"
            )
            if is_framing and name in {"nan", "not-utf-8"} and not codec.binary:
                continue  # NaN is no JSON at all
            expect("the answer", (frame.plain[0], frame.plain[1]), ("error", 7))
            check_error(frame.plain[2], "invalid", {"field": field}, name)
            await peer.ping()

    title = (
        f"A value that the protocol does not carry ({name}) is refused as `invalid`, and its field is named."
    )
    return Case(id=f"refusals.value-{name}", title=title, section="2.1", guarantees=("G16",), run=run)


for _other in RAW:
    SUITE.add(_raw(*_other))


@case("refusals.unknown-session", "10.5", "G21")
async def an_unknown_session_is_not_found(scene: Scene) -> None:
    """Every call on a session that does not exist is `not_found`, with kind and id."""
    peer = await scene.open()
    name = scene.new_id("nobody")
    for method, params in UNKNOWN_SESSION:
        if params is not None:
            await peer.refused("not_found", method, {"session_id": name, **params}, kind="session", id=name)


@case("refusals.deleted-session", "10.3", "G21", "G22")
async def a_deleted_session_is_like_none(scene: Scene) -> None:
    """A deleted session is answered like one that never was, and its id is never given again."""
    peer = await scene.open()
    name, never = await scene.session(peer), scene.new_id("nobody")
    await peer.call("sessions.delete", session_id=name)
    for method, params in UNKNOWN_SESSION:
        if params is None:
            continue
        errors = [
            await peer.refused("not_found", method, {"session_id": one, **params}) for one in (name, never)
        ]
        texts = [error["message"].replace(one, "S") for error, one in zip(errors, (name, never), strict=True)]
        require(texts[0] == texts[1], "the two are not to be told apart", expected=texts[1], seen=texts[0])
    await peer.refused("already_exists", "sessions.create", {"session_id": name}, id=name)


@case("refusals.nesting", "2.1", "G16")
async def too_deep_values_are_refused(scene: Scene) -> None:
    """A frame that nests deeper than `nesting` is `invalid`; one that just does not is taken."""
    peer = await scene.open()
    session = await scene.session(peer)
    value: list[Any] = []
    for _ in range(peer.limit("nesting") - 3):
        value = [value]
    await peer.refused("invalid", "signal", {"session_id": session, "name": "n", "data": [value]})
    await peer.call("signal", session_id=session, name="n", data=value)


@case("refusals.values", "2.1", "G16")
async def too_many_values_are_refused(scene: Scene) -> None:
    """A frame that holds more than 65,536 values is `invalid`."""
    peer = await scene.open()
    session = await scene.session(peer)
    await peer.refused("invalid", "signal", {"session_id": session, "name": "n", "data": [0] * 65_536})
