"""A mutant: our Python client with some lines of its source replaced while they are loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import NamedTuple


class Edit(NamedTuple):
    """Lines of a module, and what stands in their place."""

    module: str
    old: str
    new: str


class Mutant(NamedTuple):
    """A client that breaks one rule."""

    name: str
    section: str
    breaks: str
    """What it does wrong, in words."""
    caught_by: str
    """The case that must fail."""
    edits: tuple[Edit, ...]


class _Mutated(SourceFileLoader):
    """Loads a module with its edits made."""

    def __init__(self, name: str, path: str, edits: Sequence[Edit]) -> None:
        super().__init__(name, path)
        self._edits = edits

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the changed source; what is cached is of the true one."""
        source = mutated(self.get_source(fullname) or "", self._edits)
        return compile(source, self.path, "exec", dont_inherit=True)


class Mutating(MetaPathFinder):
    """Finds the modules that a mutant changes."""

    def __init__(self, mutant: Mutant) -> None:
        """Change these from now on, as they are imported."""
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that is changed; None for all others."""
        del target
        edits = [edit for edit in self._mutant.edits if edit.module == fullname]
        spec = PathFinder.find_spec(fullname, path) if edits else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Mutated(fullname, spec.origin, edits)
        return spec


def mutated(source: str, edits: Sequence[Edit]) -> str:
    """Return a source with its edits made.

    Raises:
        ValueError: a text that is to be replaced does not stand there exactly once.

    """
    for edit in edits:
        if source.count(edit.old) != 1:
            raise ValueError(f"{edit.module} has {source.count(edit.old)} times, not once: {edit.old!r}")
        source = source.replace(edit.old, edit.new)
    return source


def infect(mutant: Mutant) -> None:
    """Let the modules of this process be loaded as the mutant has them.

    Raises:
        ValueError: one of them was loaded before.

    """
    loaded = [edit.module for edit in mutant.edits if edit.module in sys.modules]
    if loaded:
        raise ValueError(f"loaded before they could be changed: {loaded}")
    sys.meta_path.insert(0, Mutating(mutant))
