"""Arguments that come in pieces: each is put where its JSON path says."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.adapters.google_arguments import PartialArguments, steps
from midstream.protocol.values import Value
from tests.adapters.google_events import call, chunk, pieces
from tests.adapters.memory import fed_in_memory

leaves = st.text(max_size=4) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.none()
names = st.text("abcé_ 1", min_size=1, max_size=4)
trees = st.dictionaries(
    names,
    st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3) | st.dictionaries(names, inner, min_size=1, max_size=3)
        ),
        max_leaves=6,
    ),
    max_size=3,
)


def cut(value: object, path: str) -> list[tuple[str, object]]:
    """The pieces of a value: its leaves by their paths, each text character by character."""
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return [piece for name, item in items for piece in cut(item, f"{path}['{name}']")]
    if isinstance(value, list):
        listed = enumerate(cast("list[object]", value))
        return [piece for place, item in listed for piece in cut(item, f"{path}[{place}]")]
    if isinstance(value, str) and value:
        return [(path, character) for character in value]
    return [(path, value)]


@given(trees)
async def test_any_arguments_are_put_together_from_their_pieces(tree: dict[str, object]) -> None:
    """Texts grow, maps and lists appear where a path first goes through them."""
    stream = [chunk(call("f", willContinue=True)), *(chunk(pieces(piece)) for piece in cut(tree, "$"))]
    fed, parts = await fed_in_memory([*stream, chunk({"functionCall": {}}, finish="STOP")])
    assert parts[0]["input"] == tree
    assert len(fed.calls) == 1


async def test_a_call_ends_with_its_last_piece_with_the_next_call_or_with_the_stream() -> None:
    """Whatever the provider says first."""
    begun = chunk(call("f", {"a": 1}, willContinue=True), pieces(("$.b", "x")))
    for rest in (
        [chunk(pieces(("$.c", True), more=False)), chunk(finish="STOP")],
        [chunk(pieces(("$.c", True))), chunk(call("g", {}), finish="STOP")],
        [chunk(pieces(("$.c", True)), finish="STOP")],
    ):
        _, parts = await fed_in_memory([begun, *rest])
        assert (parts[0]["state"], parts[0]["input"]) == ("ready", {"a": 1, "b": "x", "c": True})


@pytest.mark.parametrize("path", ["", "a", "$", "$..a", "$[*]", "$.a[99999999]", "$.a[0].b", "$[0]", "$.t.x"])
async def test_pieces_that_have_no_place_fail_the_call(path: str) -> None:
    """The model is told, instead of a tool being run with half of its arguments."""
    stream = [
        chunk(call("f", {"a": {}, "t": "text"}, willContinue=True)),
        chunk(pieces((path, "x"), more=False)),
    ]
    fed, parts = await fed_in_memory([*stream, chunk(finish="STOP")])
    assert parts[0]["state"] == "failed"
    assert fed.calls == []


def test_a_path_has_its_keys_and_indices() -> None:
    """In dots or in brackets, with either quote."""
    assert steps("""$.a[0]['b c']["d.e"].f""") == ["a", 0, "b c", "d.e", "f"]


@given(st.text("$.[]'\"a0*", max_size=12), leaves)
def test_no_path_is_fatal(path: str, value: Value) -> None:
    """A stranger wrote it."""
    arguments = PartialArguments({"a": [None, "text"]})
    arguments.add({"jsonPath": path, "stringValue": value})
    assert isinstance(arguments.value(), dict)
