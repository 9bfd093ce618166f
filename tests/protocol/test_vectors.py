"""Every vector, run by the code, and those of the merge law also by the program of SPEC.md."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgpack
import msgspec
import pytest

from midstream.protocol.calls import Page
from midstream.protocol.chunks import ChunkAssembler
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.digest import canonical, content_hash, message_digest
from midstream.protocol.errors import IllegalTransition, InvalidRequest, MidstreamError
from midstream.protocol.frames import Call, Chunk, Result, SessionFrame
from midstream.protocol.merge import Replica
from midstream.protocol.model import Message, Part
from midstream.protocol.outcomes import Applied, Gap, Outcome, PageOutcome
from midstream.protocol.parts import check_part
from midstream.protocol.transitions import TABLES, check
from tests import specification

if TYPE_CHECKING:
    from collections.abc import Callable

Map: TypeAlias = dict[str, Any]
VECTORS = Path(__file__).parents[2] / "protocol" / "vectors"
LAWS = ("merges.json", "gaps.json", "pages.json")
PAGE_WORDS = {PageOutcome.MERGED: "applied", PageOutcome.REREAD: "again", PageOutcome.DROPPED: "ignored"}


def load(file: str) -> Map:
    """A file of vectors."""
    return cast("Map", json.loads((VECTORS / file).read_text("utf-8")))


def cases(*files: str) -> pytest.MarkDecorator:
    """Run a test with each case of these files."""
    found = [(file, case) for file in files for case in load(file)["cases"]]
    return pytest.mark.parametrize(
        "case",
        [pytest.param(case, id=f"{file.removesuffix('.json')}: {case['name']}") for file, case in found],
    )


def with_bytes(value: object) -> object:
    """The JSON value with its ``$bytes`` as bytes."""
    if isinstance(value, dict):
        items = cast("dict[str, object]", value)
        if set(items) == {"$bytes"}:
            return bytes.fromhex(str(items["$bytes"]))
        return {key: with_bytes(item) for key, item in items.items()}
    return [with_bytes(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def decoded(codec: Codec, sender: str, data: bytes) -> object:
    """A frame, with what is encoded inside it as a plain value."""
    frame = codec.decode_client_frame(data) if sender == "client" else codec.decode_server_frame(data)
    plain = MSGPACK if codec is MSGPACK else JSON
    if isinstance(frame, Call):
        return (frame.id, frame.method, plain.decode_params(frame.method, frame.params)[1])
    if isinstance(frame, Result):
        return (
            frame.id,
            msgspec.msgpack.decode(frame.result) if codec.binary else msgspec.json.decode(frame.result),
        )
    return frame


def test_there_are_enough_vectors_and_no_law_stands_twice() -> None:
    """A name is one law."""
    names = [case["name"] for path in VECTORS.glob("*.json") for case in load(path.name)["cases"]]
    assert len(names) >= 60
    assert len(set(names)) == len(names)


@cases("encodings.json")
def test_encodings(case: Map) -> None:
    """Both encodings mean the same frame, and what is decoded is encoded as the same value."""
    forms: list[tuple[Codec, bytes]] = []
    if case.get("only") != "msgpack":
        forms.append((JSON, case.get("json", json.dumps(case["frame"])).encode()))
    if case.get("only") != "json":
        forms.append((MSGPACK, bytes.fromhex(case["msgpack"])))
    frames = [decoded(codec, case["from"], data) for codec, data in forms]
    assert all(frame is not None and frame == frames[0] for frame in frames)
    if case.get("decode_only"):
        again = MSGPACK.encode(with_bytes(case["frame"]))
        assert decoded(MSGPACK, case["from"], again) == frames[0]
        return
    for codec, data in forms:
        read: Callable[[bytes], object] = msgpack.unpackb if codec.binary else json.loads
        plain = (
            codec.decode_client_frame(data) if case["from"] == "client" else codec.decode_server_frame(data)
        )
        assert read(codec.encode(plain)) == with_bytes(case["frame"])


class _ListLaw:
    """The program of section 4.8, as a stranger would run it."""

    def __init__(self, *, archived: bool) -> None:
        self._names: dict[str, Callable[..., object]] = {}
        exec(compile(specification.block("python list-law"), "SPEC.md 4.8", "exec"), self._names)  # noqa: S102 - ours
        self._held = self._names["new_list"](archived)

    def take(self, step: Map) -> bool:
        """Take a step; True where the list is asked for again."""
        if "frame" in step:
            return bool(self._names["changes"](self._held, step["frame"]))
        if "answer" in step:
            self._names["answer"](self._held, step["answer"])
        elif "page" in step:
            self._names["page"](self._held, step["page"])
        else:
            self._names["lost" if "lost" in step else "ask_page"](self._held)
        return False

    def shown(self) -> list[list[object]]:
        """What the list shows."""
        shown = cast("list[Map]", self._names["shown"](self._held))
        return [[session["session_id"], session["revision"]] for session in shown]


@cases("lists.json")
def test_lists_by_the_program_of_the_specification(case: Map) -> None:
    """Section 4.8 can be run as it stands."""
    law = _ListLaw(archived=case.get("archived", False))
    for step in case["steps"]:
        assert law.take(step) == step.get("asks_again", False)
    assert law.shown() == case["expect"]


@cases("refusals.json")
def test_refusals(case: Map) -> None:
    """The code, the field, and what the error answers are as listed, in each encoding that is given."""
    forms: list[tuple[Codec, bytes]] = []
    if "msgpack" in case:
        forms.append((MSGPACK, bytes.fromhex(case["msgpack"])))
    if "json" in case:
        forms.append((JSON, case["json"].encode()))
    assert forms
    for codec, data in forms:
        with pytest.raises(MidstreamError) as raised:
            _read(codec, case, data)
        error = raised.value
        expected = dict(case["error"])
        assert error.code == expected.pop("code")
        assert str(error.details.get("field", "")).startswith(expected.pop("field_begins", ""))
        assert {name: error.details.get(name) for name in expected} == expected
        assert getattr(error, "call_id", None) == case.get("call_id")
        assert list(getattr(error, "write", None) or []) == case.get("write", [])


def _read(codec: Codec, case: Map, data: bytes) -> object:
    if case["read"] == "params":
        return codec.decode_params(case["method"], msgspec.Raw(data))
    return (
        codec.decode_client_frame(data) if case["read"] == "client_frame" else codec.decode_server_frame(data)
    )


@cases("parts.json")
def test_parts(case: Map) -> None:
    """A part is accepted, or refused by the field's name."""
    part = msgspec.convert(case["part"], Part)
    if "field" not in case:
        check_part(case["role"], part)
        return
    with pytest.raises(InvalidRequest) as raised:
        check_part(case["role"], part)
    assert raised.value.field == case["field"]


@cases("transitions.json")
def test_transitions(case: Map) -> None:
    """Legal moves pass, all others are refused."""
    kind, before = case["kind"], case["before"]
    for after in case["legal"]:
        check(kind, "x", before, after)
    for after in case["illegal"]:
        with pytest.raises(IllegalTransition) as raised:
            check(kind, "x", before, after)
        assert raised.value.details == {"kind": kind, "id": "x", "from": before, "to": after}


def test_the_transitions_are_of_all_states() -> None:
    """No state of a table is without its case, and every pair of states is decided."""
    found: dict[str, dict[str, set[str]]] = {}
    for case in load("transitions.json")["cases"]:
        found.setdefault(case["kind"], {})[case["before"]] = {*case["legal"], *case["illegal"]}
    assert {kind: set(states) for kind, states in found.items()} == {k: set(t) for k, t in TABLES.items()}
    assert all(after == set(states) for states in found.values() for after in states.values())


@cases("chunks.json")
def test_chunks(case: Map) -> None:
    """Each chunk gives nothing, a frame, or an error, as listed."""
    codec = JSON if case["encoding"] == "json" else MSGPACK
    assembler = ChunkAssembler(case["limit_bytes"], codec)
    if "chunk_texts" in case:
        chunks = [codec.decode_client_frame(text.encode()) for text in case["chunk_texts"]]
    else:
        pieces = [
            (n, last, bytes.fromhex(piece) if codec.binary else piece) for n, last, piece in case["chunks"]
        ]
        chunks = [Chunk(*piece) for piece in pieces]
    for chunk, result in zip(chunks, case["results"], strict=True):
        assert isinstance(chunk, Chunk)
        if not isinstance(result, dict):
            whole = assembler.feed(chunk)
            assert (whole and (whole.hex() if codec.binary else whole.decode())) == result
            continue
        expected = dict(cast("Map", result))
        with pytest.raises(MidstreamError) as raised:
            assembler.feed(chunk)
        assert raised.value.code == expected.pop("error")
        assert {name: raised.value.details[name] for name in expected} == expected


@cases("digests.json")
def test_digests(case: Map) -> None:
    """The canonical form, and what is taken over it."""
    assert canonical(case.get("value", case.get("message"))) == case["canonical"].encode()
    if "message" in case:
        assert message_digest(msgspec.convert(case["message"], Message)) == case["digest"]
    else:
        assert content_hash(case["value"]) == case["sha256"] == sha256(case["canonical"].encode()).hexdigest()


@cases(*LAWS)
def test_laws(case: Map) -> None:
    """Each step has its outcome, a gap changes nothing, and the replica at the end is the one listed."""
    replica = Replica("s")
    for frame in _given(case):
        assert isinstance(replica.apply(_frame(frame)), Applied)
    for step in case["steps"]:
        before = _view(replica)
        word = _step(replica, step)
        assert word == step.get("outcome")
        assert word not in {"gap", "restart", "again", "ignored"} or _view(replica) == before
    expected = dict(case["expect"])
    view = _view(replica)
    assert {name: view[name] for name in expected} == expected


def _given(case: Map) -> list[Any]:
    return next(given[case["given"]] for given in map(_all_given, LAWS) if case["given"] in given)


def _all_given(file: str) -> Map:
    return cast("Map", load(file)["given"])


def _frame(frame: object) -> SessionFrame:
    return cast("SessionFrame", MSGPACK.decode_server_frame(MSGPACK.encode(frame)))


def _step(replica: Replica, step: Map) -> str | None:
    if "ask" in step:
        replica.expect_page()
        return None
    if "page" in step:
        return PAGE_WORDS[replica.merge_page(msgspec.convert(step["page"], Page))]
    outcome: Outcome = replica.apply(_frame(step["frame"]))
    if isinstance(outcome, Gap):
        return "gap" if outcome.keep_cursor else "restart"
    return "applied" if isinstance(outcome, Applied) else "ignored"


def _view(replica: Replica) -> Map:
    return cast(
        "Map",
        msgspec.to_builtins(
            {
                "messages": replica.messages(),
                "last": replica.version,
                "epoch": replica.epoch,
                "durable": replica.durable,
                "from_sequence": replica.from_sequence,
                "has_more": replica.has_more,
                "turns": dict(replica.turns),
                "session": replica.session,
            }
        ),
    )


@cases(*LAWS)
def test_laws_by_the_program_of_the_document(case: Map) -> None:
    """A stranger's replica passes the same vectors."""
    names: dict[str, Any] = {}
    exec(compile(specification.block("python merge-law"), "SPEC.md 4.5", "exec"), names)  # noqa: S102 - ours
    replica = names["new_replica"](include_internal=False)
    for frame in _given(case):
        assert names["apply"](replica, frame) == "applied"
    for step in case["steps"]:
        if "page" in step:
            outcome = step.get("without_frames", step["outcome"])
            assert names["merge_page"](replica, step["page"]) == outcome
            if outcome != step["outcome"]:
                return
        elif "frame" in step:
            assert names["apply"](replica, step["frame"]) == step["outcome"]
    messages = [replica["messages"][sequence] for sequence in sorted(replica["messages"])]
    view: Map = {**replica, "messages": messages}
    first = replica["from_sequence"]
    view["has_more"] = first is None or first > replica["session"].get("first_sequence", 1)
    expected = dict(case["expect"])
    assert {name: view[name] for name in expected} == expected
