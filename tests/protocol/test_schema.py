"""Laws of the JSON Schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from midstream.protocol.calls import PARAMS, RESULTS
from midstream.protocol.schema import schemas, write

if TYPE_CHECKING:
    from midstream.protocol.values import Value

SCHEMA = Path(__file__).parents[2] / "protocol" / "schema"
COMMAND = "python -m midstream.protocol.schema protocol/schema"


def test_the_schemas_are_current(tmp_path: Path) -> None:
    """Whoever changes a type runs the command again."""
    write(str(tmp_path))
    made = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text("utf-8") for path in SCHEMA.glob("*.json")}
    assert made == kept, f"run: {COMMAND}"


def test_every_reference_leads_to_a_definition() -> None:
    """A schema stands alone."""
    for schema in schemas().values():
        definitions = cast("dict[str, Value]", schema["$defs"])
        references = set(_references(schema))
        assert references
        assert {reference.removeprefix("#/$defs/") for reference in references} <= set(definitions)


def test_every_method_has_its_params_and_its_result() -> None:
    """By name, under ``properties``."""
    made = schemas()
    assert set(cast("dict[str, Value]", made["params.json"]["properties"])) == set(PARAMS)
    assert set(cast("dict[str, Value]", made["results.json"]["properties"])) == set(RESULTS) == set(PARAMS)


def test_the_schemas_are_plain_json() -> None:
    """Two runs give the same text."""
    assert json.dumps(schemas()) == json.dumps(schemas())


def _references(value: Value) -> list[str]:
    if isinstance(value, list):
        return [found for item in value for found in _references(item)]
    if not isinstance(value, dict):
        return []
    own = [str(value["$ref"])] if isinstance(value.get("$ref"), str) else []
    return own + [found for item in value.values() for found in _references(item)]
