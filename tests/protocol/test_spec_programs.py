"""Laws about what can be run in SPEC.md: its examples are real bytes, and its merge law is the code's."""

import ast
import json
import random
import re
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import cast

import msgspec
import pytest

from midstream.protocol.calls import Page
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.digest import message_digest
from midstream.protocol.frames import Call, ErrorFrame, Result, ServerFrame, SessionFrame
from midstream.protocol.merge import Replica
from midstream.protocol.model import Message
from midstream.protocol.outcomes import Applied, Gap, Outcome, PageOutcome
from midstream.protocol.values import Value
from tests import specification
from tests.protocol.author import Author, Frame, Map, misfit

EXAMPLES = specification.examples()
PAGE_WORDS = {PageOutcome.MERGED: "applied", PageOutcome.REREAD: "again", PageOutcome.DROPPED: "ignored"}


class Law:
    """The program of section 4.5, as a stranger would run it."""

    def __init__(self) -> None:
        names: dict[str, Callable[..., object]] = {}
        exec(compile(specification.block("python merge-law"), "SPEC.md 4.5", "exec"), names)  # noqa: S102 - ours
        self._names = names
        self.replica = cast("Map", names["new_replica"](include_internal=False))

    def apply(self, frame: Frame) -> str:
        """Apply a frame, and return the law's word for what came of it."""
        return str(self._names["apply"](self.replica, frame))

    def merge_page(self, page: Map) -> str:
        """Merge a page, and return the law's word for what came of it."""
        return str(self._names["merge_page"](self.replica, page))

    def messages(self) -> list[Map]:
        """The messages, ascending."""
        held = cast("dict[int, Map]", self.replica["messages"])
        return [held[sequence] for sequence in sorted(held)]


def _decoded(codec: Codec, side: str, data: bytes) -> object:
    """A frame with its params or its result decoded too, so that two encodings can be compared."""
    if side == "client":
        frame = codec.decode_client_frame(data)
        return (
            (frame.id, *codec.decode_params(frame.method, frame.params)) if isinstance(frame, Call) else frame
        )
    answer = codec.decode_server_frame(data)
    if isinstance(answer, Result):
        return (answer.id, codec.decode_result(side.split()[1], answer.result))
    return answer


def _word(outcome: Outcome) -> str:
    if isinstance(outcome, Gap):
        return "gap" if outcome.keep_cursor else "restart"
    return "applied" if isinstance(outcome, Applied) else "ignored"


def _frame(frame: Frame) -> ServerFrame:
    decoded = MSGPACK.decode_server_frame(MSGPACK.encode(frame))
    assert decoded is not None
    return decoded


@pytest.mark.parametrize(("side", "method", "hexadecimal", "code"), EXAMPLES)
def test_an_example_is_a_frame_of_the_code(
    side: str, method: str, hexadecimal: str | None, code: str
) -> None:
    """The JSON decodes; where bytes stand below it, they are the msgpack of the same frame."""
    sender = f"{side} {method}".strip()
    frame = _decoded(JSON, sender, code.encode())
    assert not isinstance(frame, ErrorFrame)
    assert frame is not None
    if hexadecimal is not None:
        data = bytes.fromhex(hexadecimal)
        assert _decoded(MSGPACK, sender, data) == frame
        assert MSGPACK.encode(json.loads(code)) == data


def test_the_examples_show_what_a_client_must_know() -> None:
    """Hello, subscribe, a prompt, deltas, a change and a reconnect, the short ones also as bytes."""
    tags = [(side, json.loads(code)[0], hexadecimal is not None) for side, _, hexadecimal, code in EXAMPLES]
    assert ("server", 7, True) in tags  # a short delta, which begins with its channel
    for side, tag in (
        ("client", "hello"),
        ("client", "call"),
        ("server", "result"),
        ("server", "d"),
        ("server", "change"),
    ):
        assert (side, tag, True) in tags


def test_the_law_of_the_document_leads_through_its_own_session() -> None:
    """The server's frames of Appendix C make the replica whose digests the server gives there."""
    law = Law()
    digests: Value = None
    for side, method, _, code in EXAMPLES:
        frame = cast("Frame", json.loads(code))
        if side == "server" and method == "subscribe":
            result = frame[2]
            assert law.apply(["sync", result["channel"], result["sync"]]) == "applied"
        elif side == "server" and method == "verify":
            digests = frame[2]["digests"]
        elif side == "server" and method == "instead":
            assert law.apply(frame) == "ignored"  # it has the version of the frame that it could replace
        elif side == "server" and frame[0] in {7, "d", "change", "skip", "sync"}:
            assert law.apply(frame) == "applied"
        elif frame[0] == "mark":
            assert law.apply(frame) == "ignored"
            assert law.replica["last"] == frame[2]
    messages = msgspec.convert(law.messages(), list[Message])
    assert [[one.sequence, one.revision, message_digest(one)] for one in messages] == digests


def test_the_canonical_form_that_is_shown_is_the_one_that_is_digested() -> None:
    """A stranger who gets another digest can compare the bytes."""
    canonical = specification.block("text canonical").removesuffix("\n").encode()
    assert sha256(canonical).hexdigest()[:16] in specification.section("C.6")
    assert (
        message_digest(msgspec.convert(json.loads(canonical), Message)) == sha256(canonical).hexdigest()[:16]
    )


def _compare(seed: int) -> set[str]:
    """Give both laws the same frames and pages; they must agree at each step. Returns what came of them."""
    chance = random.Random(seed)
    author, law, code = Author(chance), Law(), Replica("s")
    for _ in range(chance.randrange(20)):
        author.step()
    history = [author.reset(chance.choice([0, 1, 3, 50]))]
    outcomes: set[str] = set()
    for _ in range(60):
        frame = json.loads(json.dumps(history[-1]))
        outcome = code.apply(cast("SessionFrame", _frame(frame)))
        word = law.apply(frame)
        assert word == _word(outcome)
        outcomes.add(word)
        if word != "restart" and chance.random() < 0.2:
            before = chance.choice([None, 1, 3, *[law.replica["from_sequence"]] * 6])
            page = author.page(before, chance.choice([1, 2, 50]))
            merged = code.merge_page(msgspec.convert(page, Page))
            assert law.merge_page(page) == PAGE_WORDS[merged]
            outcomes.add(merged.value)
        held = law.replica
        assert msgspec.to_builtins(code.messages()) == law.messages()
        assert (code.version, code.from_sequence) == (held["last"], held["from_sequence"])
        assert msgspec.to_builtins(code.session) == held["session"]
        history.append(_next(chance, author, history, law, repair=isinstance(outcome, Gap)))
    return outcomes


def test_the_law_of_the_document_is_the_law_of_the_code() -> None:
    """Frames that are lost, doubled and late, syncs from older cursors, pages: same outcome, same replica."""
    outcomes = set[str]().union(*(_compare(seed) for seed in range(300)))
    assert outcomes == {"applied", "ignored", "gap", "restart", "merged", "reread", "dropped"}


def _next(chance: random.Random, author: Author, history: list[Frame], law: Law, *, repair: bool) -> Frame:
    """What reaches the reader next: mostly what happens, at times something worse."""
    if repair:
        return author.reset(chance.choice([0, 2, 50]))
    what = chance.random()
    if what < 0.08:
        return chance.choice(history)
    if what < 0.1:
        return misfit(chance, author)
    if what < 0.16:
        author.step()  # is lost
    elif what < 0.3:
        author.step()
        since = max(1, law.replica["last"] - chance.choice([0, 0, 1, 3]))
        return chance.choice([author.catchup, author.replay])(since)
    elif what < 0.36:
        return ["mark", 1, author.version]
    return author.step()


def test_every_section_that_code_cites_is_there() -> None:
    """`SPEC 3.4` in a docstring leads to a heading."""
    root, known = specification.SPEC.parents[1], specification.sections()
    cited = {
        (str(path.relative_to(root)), number)
        for folder in ("protocol", "server", "clients/python", "cli", "tests", "bench")
        for path in (root / folder).rglob("*.py")
        for numbers in re.findall(r"SPEC ((?:\d+(?:\.\d+)?(?:, )?)+)", path.read_text("utf-8"))
        for number in numbers.rstrip(", ").split(", ")
    }
    assert len(cited) > 20
    assert sorted(one for one in cited if one[1] not in known) == []


def test_the_strangers_client_uses_two_libraries_only() -> None:
    """It is a program of its own, and has nothing of this project in it."""
    code = ast.parse(specification.block("python stranger-client"))
    modules = {alias.name for node in ast.walk(code) if isinstance(node, ast.Import) for alias in node.names}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(code))
    assert modules - sys.stdlib_module_names == {"msgpack", "websockets"}
