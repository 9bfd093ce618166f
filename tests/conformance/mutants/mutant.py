"""A mutant: one piece of the server, replaced by one that is a little wrong, as somebody might really get it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch


@dataclass(frozen=True)
class Mutant:
    """One broken server.

    Attributes:
        name: for the command line.
        rule: the rule that it breaks, and its section of SPEC.md.
        patches: what is replaced: an object, the name of its attribute, and what takes its place.
        chapters: the cases that are tried; a pattern of ids each.
    """

    name: str
    rule: str
    section: str
    patches: tuple[tuple[Any, str, Any], ...]
    chapters: tuple[str, ...]

    def break_server(self) -> None:
        """Replace what is to be replaced, for the rest of the process."""
        for owner, attribute, instead in self.patches:
            patch.object(owner, attribute, instead).start()


def mutant(name: str, section: str, rule: str, chapters: str, *patches: tuple[Any, str, Any]) -> Mutant:
    """Return a mutant; ``chapters`` are patterns with spaces between them."""
    return Mutant(name, rule, section, patches, tuple(chapters.split()))


Replacement = Callable[..., Any]
