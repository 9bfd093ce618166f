"""Laws about SPEC.md: it has every frame, call, field, limit and error of the code, and no other."""

import re
from collections.abc import Iterator
from types import ModuleType, UnionType
from typing import get_args

import msgspec
import pytest
from msgspec import UNSET, inspect

from midstream.protocol import calls, errors, frames, model
from midstream.protocol.agents import is_stored
from midstream.protocol.calls import PARAMS, RESULTS
from midstream.protocol.errors import MidstreamError
from midstream.protocol.frames import ClientFrame, DetachCode, ServerFrame
from midstream.protocol.limits import DEFAULT_LIMITS, Limits
from midstream.protocol.model import StepStartPart
from midstream.protocol.transitions import TABLES
from midstream.protocol.values import MAX_INTEGER
from midstream.server.connections.closing import CloseCode
from tests import specification
from tests.protocol.smallest_writes import OPS, made
from tests.specification import WORD, Row

Struct = type[msgspec.Struct]

PARTS: dict[str, Struct] = {str(kind.__struct_config__.tag): kind for kind in get_args(model.Part)}
COMMON_FIELDS = set(StepStartPart.__struct_fields__)


def _kinds(frame: UnionType | object) -> dict[str, Struct]:
    """The frames of a union by their tags; the one that has none is called `none`."""
    return {str(kind.__struct_config__.tag or "none"): kind for kind in get_args(frame)}


def _entities() -> dict[str, Struct]:
    """Every Struct that stands on the wire as a map and has a table of its own."""
    modules: tuple[ModuleType, ...] = (model, frames, calls, errors)
    found: dict[str, Struct] = {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not name.startswith("_")
    }
    elsewhere = {*PARAMS.values(), *RESULTS.values(), *PARTS.values(), Limits} - {StepStartPart}
    return {
        name: kind
        for name, kind in found.items()
        if kind not in elsewhere and kind is not msgspec.Struct and not kind.__struct_config__.array_like
    }


ENTITIES = _entities()


def _fields(kind: Struct) -> dict[str, inspect.Field]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field for field in info.fields}


def _marked(kind: Struct, names: Iterator[str] | None = None) -> list[str]:
    """The names of the fields as the tables write them: with a `?` where the field may be absent."""
    fields = _fields(kind)
    return [
        f"{name}?" if not field.required else name
        for name, field in fields.items()
        if names is None or name in names
    ]


def _documented(rows: list[Row], column: int = 0) -> list[str]:
    return [row[column].strip("`") for row in rows]


def _alternatives(kind: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.UnionType):
        for alternative in kind.types:
            yield from _alternatives(alternative)
    elif isinstance(kind, inspect.Metadata):
        yield from _alternatives(kind.type)
    else:
        yield kind


_WORDS: dict[type[inspect.Type], str] = {
    inspect.IntType: r"count|integer|ms\b|\d+ to \d+",
    inspect.StrType: r"string|\bid\b",
    inspect.BoolType: r"boolean",
    inspect.ListType: r"list",
    inspect.DictType: r"map",
    inspect.NoneType: r"`null`",
    inspect.AnyType: r"value|map|bytes",
    inspect.StructType: r"map|message|session|turn|cursor|\bpart\b|sync payload|response",
}


def _wrong_types(kind: Struct, rows: dict[str, Row]) -> list[str]:
    """Where a row's type or default is not that of the field."""
    wrong: list[str] = []
    for name, field in _fields(kind).items():
        row = rows.get(name)
        if row is None:
            continue
        said = row[0]
        for one in _alternatives(field.type):
            if isinstance(one, inspect.LiteralType):
                wrong += [f"{name}: {value!r} is missing" for value in one.values if f"`{value}`" not in said]
            elif type(one) in _WORDS and not re.search(_WORDS[type(one)], said):
                wrong.append(f"{name}: {said!r} does not say {type(one).__name__}")
            if isinstance(one, inspect.IntType) and one.le not in (None, MAX_INTEGER):
                expected = f"{one.ge} to {one.le}"
                wrong += [] if expected in said else [f"{name}: {said!r} does not say {expected}"]
        if isinstance(field.default, (str, int)) and kind in {*PARAMS.values(), *OPS.values()}:
            value = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
            wrong += [] if f"`{value}`" in said else [f"{name}: default {value!r} is missing"]
    return wrong


def test_each_entity_has_a_table_of_its_own() -> None:
    """A Struct that is on the wire and in no table would be unknown to a stranger."""
    assert set(specification.tables("fields")) == set(ENTITIES)


@pytest.mark.parametrize("name", sorted(ENTITIES))
def test_the_table_of_an_entity_has_its_fields_and_no_other(name: str) -> None:
    """Names, presence and types are those of the Struct."""
    kind, rows = ENTITIES[name], specification.tables("fields")[name]
    tag = kind.__struct_config__.tag_field
    assert _documented(rows) == [*([tag] if tag else []), *_marked(kind)]
    assert _wrong_types(kind, {row[0].strip("`?"): row[1:] for row in rows}) == []


@pytest.mark.parametrize("name", sorted(PARTS))
def test_the_table_of_parts_has_the_fields_of_each_part(name: str) -> None:
    """What all parts have is in a table of its own."""
    kind = PARTS[name]
    rows = [row for row in specification.table("parts") if row[0] == f"`{name}`"]
    own = [field for field in _marked(kind) if field.strip("?") not in COMMON_FIELDS]
    assert _documented(rows, 1) == own
    assert _wrong_types(kind, {row[1].strip("`?"): row[2:] for row in rows}) == []
    assert f"**`{name}`**" in specification.section("2.3")


def test_the_table_of_parts_has_no_other_parts() -> None:
    """A part that is not in the code is promised to nobody."""
    assert {row[0].strip("`") for row in specification.table("parts")} == set(PARTS) - {"step-start"}


def test_the_frames_are_those_of_the_code() -> None:
    """Each has a line with its elements, and a row that says who sends it."""
    kinds = _kinds(ClientFrame) | _kinds(ServerFrame)
    lines = {
        tag: [element.split(":")[0] for element in elements]
        for tag, elements in specification.signatures().items()
    }
    assert lines == {tag: list(kind.__struct_fields__) for tag, kind in kinds.items()}
    rows = {
        row[0].strip("`"): row[1]
        for row in (line.strip("| ").split(" | ") for line in specification.section("3.2").splitlines())
        if row[0].strip("`") in kinds
    }
    directions = {
        tag: " ".join(
            arrow
            for arrow, sent in (("→", tag in _kinds(ClientFrame)), ("←", tag in _kinds(ServerFrame)))
            if sent
        )
        for tag in kinds
    }
    assert rows == directions


def test_the_elements_of_each_frame_have_the_types_of_the_code() -> None:
    """A count is a count and a string a string."""
    for tag, elements in specification.signatures().items():
        kind = (_kinds(ClientFrame) | _kinds(ServerFrame))[tag]
        said = {name: [kind_of] for name, kind_of in (element.split(": ", 1) for element in elements)}
        assert _wrong_types(kind, said) == [], tag


@pytest.mark.parametrize("op", sorted(OPS))
def test_the_tables_of_writes_have_the_fields_of_each_and_whether_it_is_stored(op: str) -> None:
    """Names, presence, types and defaults; and what a worker may wait for."""
    rows = [row for row in specification.table("writes") if row[0] == f"`{op}`"]
    assert _documented(rows, 1) == _marked(OPS[op])
    assert _wrong_types(OPS[op], {row[1].strip("`?"): row[2:] for row in rows}) == []
    stored = next(row[1] for row in specification.table("ops") if row[0] == f"`{op}`")
    assert stored in ({"yes"} if is_stored(made(op)) else {"no"}) or op == "add_part"


def test_the_tables_of_writes_have_no_other_writes() -> None:
    """Each once, and fields of none that is not there."""
    ops = [row[0].strip("`") for row in specification.table("ops")]
    assert sorted(ops) == sorted(OPS)
    assert {row[0].strip("`") for row in specification.table("writes")} <= set(OPS)


def test_the_codes_of_detached_are_those_of_the_code() -> None:
    """A worker that knows them all knows what to do."""
    rows = specification.tables("detached")["codes"]
    assert [row[0].strip("`") for row in rows] == list(get_args(DetachCode))


def test_each_method_has_a_section_or_shares_one() -> None:
    """What a method takes and gives is in its own table, or is said to be that of another."""
    tables = specification.tables("call")
    assert set(tables) <= set(PARAMS)
    for method in PARAMS:
        assert f"`{method}`" in specification.section("7"), method
        alike = [other for other in tables if PARAMS[other] is PARAMS[method]]
        assert alike or not PARAMS[method].__struct_fields__, f"no table has the parameters of {method}"


@pytest.mark.parametrize("method", sorted(specification.tables("call")))
def test_the_table_of_a_method_has_its_params_and_its_result(method: str) -> None:
    """A method without rows of a result has an empty one, or that of another method."""
    rows = specification.tables("call")[method]
    params = [row[1:] for row in rows if row[0] == "→"]
    result = [row[1:] for row in rows if row[0] == "←"]
    assert _documented(params) == _marked(PARAMS[method])
    assert _wrong_types(PARAMS[method], {row[0].strip("`?"): row[1:] for row in params}) == []
    if result:
        assert _documented(result) == _marked(RESULTS[method])
        assert _wrong_types(RESULTS[method], {row[0].strip("`?"): row[1:] for row in result}) == []
    else:
        shared = [
            other
            for other, kind in RESULTS.items()
            if kind is RESULTS[method]
            and any(row[0] == "←" for row in specification.tables("call").get(other, []))
        ]
        assert shared or not RESULTS[method].__struct_fields__


def _errors() -> dict[str, type[MidstreamError]]:
    found: dict[str, type[MidstreamError]] = {}
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, MidstreamError) and kind is not MidstreamError:
            found[kind.code] = kind
    return found


def test_the_errors_are_those_of_the_code() -> None:
    """Code and retryable; more codes than these reach nobody."""
    rows = {row[0].strip("`"): row[1] for row in specification.table("errors")}
    assert rows == {code: "yes" if kind.retryable else "no" for code, kind in _errors().items()}


def test_the_limits_are_those_of_the_code_with_their_defaults() -> None:
    """Names in order, defaults as numbers."""
    rows = {row[0].strip("`"): int(row[1]) for row in specification.table("limits")}
    assert list(rows.items()) == list(msgspec.to_builtins(DEFAULT_LIMITS).items())


def test_the_close_codes_are_those_of_the_server() -> None:
    """Numbers and names."""
    rows = {int(row[0]): row[1].strip("`") for row in specification.tables("close")["codes"]}
    assert rows == {int(code): code.name.lower() for code in CloseCode}


def test_the_state_tables_are_those_of_the_code() -> None:
    """Every state, and every state that may follow it."""
    found = {
        kind: {row[0].strip("`"): frozenset(WORD.findall(row[1])) for row in rows}
        for kind, rows in specification.tables("states").items()
    }
    assert found == TABLES


def test_nothing_is_named_that_does_not_exist() -> None:
    """Tags, methods, errors and close codes, wherever the document names one."""
    prose = specification.prose()
    tags = set(re.findall(r'\["(\w+)", ', prose))
    assert tags <= set(_kinds(ClientFrame) | _kinds(ServerFrame))
    methods = set(re.findall(r"`(sessions\.\w+)`", prose))
    methods |= set(re.findall(r"^### 7\.\d+ `([\w.]+)`$", prose, re.MULTILINE))
    assert methods <= set(PARAMS)
    allowed = {*_errors(), *Limits.__struct_fields__, *PARAMS, *_reasons(), "session", "message", "turn"}
    allowed |= {"interaction", "input", "key", "reject", "first_sequence", "id", "kind", "with", "current"}
    allowed |= {"through_sequence", "summary", "token"}
    for line in re.findall(r"^(?:Result: .*)?Errors: (.*?)\. Again:", prose, re.MULTILINE | re.DOTALL):
        assert set(WORD.findall(line)) <= allowed, line
    numbers = {int(number) for number in re.findall(r"(?<![|\d`] )\b(4[05]\d\d)\b(?! \| bytes)", prose)}
    assert numbers - {4499} <= {int(code) for code in CloseCode}


def _reasons() -> set[str]:
    row = next(row for row in specification.table("errors") if row[0] == "`refused`")
    return set(WORD.findall(row[3].partition("`reason`:")[2]))


def test_guarantees_and_races_are_numbered_without_holes() -> None:
    """Tests cite them by number."""
    for letter, sections in (("G", ("1.3", "14.10")), ("R", ("12", "14.11"))):
        text = "".join(map(specification.section, sections))
        found = re.findall(rf"^\| {letter}(\d+) \|", text, re.MULTILINE)
        assert sorted(int(one) for one in found) == list(range(1, len(found) + 1))
        assert len(found) > 15


def test_a_field_may_be_absent_only_where_absent_is_not_null() -> None:
    """What has no default of its own is UNSET when it is absent, so that null stays a value."""
    for kind in (*ENTITIES.values(), *PARTS.values(), *PARAMS.values(), *RESULTS.values()):
        for field in _fields(kind).values():
            assert field.default is not None or field.name == "data", (kind, field.name)
            if field.default is UNSET:
                assert not field.required
