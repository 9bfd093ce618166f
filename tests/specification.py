"""Reads protocol/SPEC.md for tests: its headings, its tables, its examples and its programs.

A table that a test reads is announced by a comment above it (`<!-- fields Session -->`); a block of
code by the words behind its fence.
"""

import re
from functools import cache
from pathlib import Path

SPEC = Path(__file__).resolve().parents[1] / "protocol" / "SPEC.md"

Row = list[str]

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (?:Appendix )?([0-9A-Z]+(?:\.[0-9]+)?)\.? ", re.MULTILINE)
_SIGNATURE = re.compile(r'^    \[(?:"(\w+)", )?(\w+: .*)\]$', re.MULTILINE)
_TABLE = re.compile(r"^<!-- (.+?) -->\n\|.*\|\n\|[-|]+\|\n((?:\|.*\|\n)+)", re.MULTILINE)
WORD = re.compile(r"`([^`\n]+)`")
"""A name of the protocol, in backticks."""


@cache
def text() -> str:
    """The whole document."""
    return SPEC.read_text("utf-8")


@cache
def prose() -> str:
    """The document without its blocks of code."""
    return _FENCE.sub("", text())


def sections() -> set[str]:
    """The numbers of all headings: `2`, `2.6`, `A`, `C.1`."""
    return set(_HEADING.findall(prose()))


def section(number: str) -> str:
    """The text under one heading, up to the next one of its level or a higher one."""
    heading = re.search(rf"^(#+) (?:Appendix )?{re.escape(number)}\.? .*\n", text(), re.MULTILINE)
    assert heading, f"SPEC.md has no section {number}"
    rest = text()[heading.end() :]
    following = re.search(rf"^#{{1,{len(heading[1])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


def tables(kind: str) -> dict[str, list[Row]]:
    """The tables that are announced as `<!-- kind NAME -->`, by name; cells are stripped."""
    found = {
        announced.removeprefix(kind).strip(): [
            [cell.strip() for cell in line.strip("|").split("|")] for line in rows.splitlines()
        ]
        for announced, rows in _TABLE.findall(text())
        if announced.split()[0] == kind
    }
    assert found, f"SPEC.md has no table of {kind}"
    return found


def table(name: str) -> list[Row]:
    """The one table that is announced as `<!-- name -->`."""
    return tables(name)[""]


def signatures() -> dict[str, list[str]]:
    """The elements of each frame after its tag, as `name: type`; a frame without one is called `none`."""
    return {tag or "none": _split(elements) for tag, elements in _SIGNATURE.findall(section("3.9"))}


def blocks(info: str) -> list[str]:
    """The blocks of code whose fence says exactly this."""
    return [code for said, code in _FENCE.findall(text()) if said == info]


def block(info: str) -> str:
    """The only block of code whose fence says exactly this."""
    (code,) = blocks(info)
    return code


def examples() -> list[tuple[str, str, str | None, str]]:
    """Each example: who sends it, the method that a result is of, its bytes in hex or None, its JSON."""
    fences = _FENCE.findall(text())
    found: list[tuple[str, str, str | None, str]] = []
    for (info, code), (next_info, next_code) in zip(fences, [*fences[1:], ("", "")], strict=True):
        if info.startswith("json example "):
            side, method = f"{info.removeprefix('json example ')} ".split(" ", 1)
            found.append((side, method.strip(), next_code if next_info == "hex" else None, code))
    return found


def _split(elements: str) -> list[str]:
    """Split at commas, but not at those within a type."""
    return re.split(r", (?=\w+: )", elements)
