"""Laws about the clients in TypeScript: which way they import, and what they depend on."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CLIENTS = Path(__file__).resolve().parents[2] / "clients"

# The lowest comes first. What stands in one line does not import each other.
LAYERS = {
    "typescript": (
        ("protocol",),
        ("client",),
        ("index", "browser", "indexeddb", "sessions"),
        ("react",),
        ("ai-sdk", "assistant-ui"),
    ),
    "web": (
        ("styles", "own", "markdown"),
        ("parts",),
        ("app",),
        ("composer", "sidebar", "lab"),
        ("conversation",),
        ("frame", "gallery"),
        ("main",),
    ),
}
pytestmark = pytest.mark.skipif(
    not (CLIENTS / "typescript").is_dir(), reason="the clients' source is in a clone, and not in an sdist"
)

IMPORT = re.compile(r"""(?:\bfrom|\bimport|\bimport\()\s*"(\.[^"]+)\"""")


def room_of(path: Path, source: Path) -> str:
    """Return the folder of ``src`` that a file is in, or the file's own name where it is in none."""
    return path.relative_to(source).parts[0].partition(".")[0]


def imports_of(package: str) -> Iterator[tuple[Path, str, str]]:
    """Give each import between rooms: the file, its room, and the other one."""
    source = CLIENTS / package / "src"
    for path in sorted(source.rglob("*.ts*")):
        for target in IMPORT.findall(path.read_text("utf-8")):
            here, there = room_of(path, source), room_of((path.parent / target).resolve(), source)
            if here != there:
                yield path.relative_to(CLIENTS), here, there


@pytest.mark.parametrize("package", LAYERS)
def test_rooms_of_the_clients_import_in_one_direction(package: str) -> None:
    """A room imports only those below it, and every room has its layer."""
    height = {room: level for level, rooms in enumerate(LAYERS[package]) for room in rooms}
    found = list(imports_of(package))
    assert {room for _, *rooms in found for room in rooms} == height.keys()
    wrong = [(path, here, there) for path, here, there in found if height[there] >= height[here]]
    assert wrong == []


@pytest.mark.parametrize("package", LAYERS)
def test_every_npm_dependency_has_a_purpose(package: str) -> None:
    """The package's README says in a table what each is for: package.json has no place for it."""
    manifest = json.loads((CLIENTS / package / "package.json").read_text("utf-8"))
    names = {*manifest["dependencies"], *manifest["devDependencies"]}
    rows = [
        line.split("|")
        for line in (CLIENTS / package / "README.md").read_text("utf-8").splitlines()
        if line.startswith("| `") and line.count("|") == 3
    ]
    told = {name for _, packages, *_ in rows for name in re.findall(r"`([^`]+)`", packages)}
    assert names - told == set()
