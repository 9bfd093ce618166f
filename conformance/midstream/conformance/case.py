"""A case: one rule of SPEC.md, and how to try it. A suite: the cases for servers, or those for clients."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

S = TypeVar("S")
"""What a case is given to try its rule with."""


@dataclass(frozen=True, kw_only=True)
class Case(Generic[S]):
    """One rule, and the function that tries it.

    ``run`` returns where the rule holds, raises `Failed` where it does not, or `Skipped`.

    Attributes:
        id: ``chapter.name``; stable, so that results can be compared.
        title: the rule in one sentence.
        section: the section of SPEC.md that states it, such as ``4.4``.
        guarantees: the ids of SPEC 1.3, 12 and 14 that it shows, such as ``G6`` or ``R20``.
        needs: what it cannot do without, such as ``agent`` or ``restart``; the scene knows what there is.
        seconds: how long it may take, before it fails.
        heartbeats: how many heartbeats of the server may be added to that.
    """

    id: str
    title: str
    section: str
    guarantees: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()
    seconds: float = 20.0
    heartbeats: int = 0
    run: Callable[[S], Awaitable[None]]

    @property
    def alone(self) -> bool:
        """Whether no other case can run beside it: it restarts what is tested."""
        return "restart" in self.needs

    def matches(self, patterns: Sequence[str]) -> bool:
        """Say whether a pattern names it: an id, chapter, glob, section (``4`` or ``4.4``) or guarantee."""
        return not patterns or any(self._is_named(pattern) for pattern in patterns)

    def _is_named(self, pattern: str) -> bool:
        return (
            fnmatchcase(self.id, pattern)
            or self.id.startswith(f"{pattern}.")
            or self.section == pattern
            or self.section.startswith(f"{pattern}.")
            or pattern in self.guarantees
        )


class Suite(Generic[S]):
    """The cases for one kind of implementation, in the order of SPEC.md."""

    def __init__(self) -> None:
        """Begin without cases; the decorator `case` and `add` bring them."""
        self._cases: dict[str, Case[S]] = {}

    def case(
        self,
        id: str,
        section: str,
        *guarantees: str,
        needs: Sequence[str] = (),
        seconds: float = 20.0,
        heartbeats: int = 0,
    ) -> Callable[[Callable[[S], Awaitable[None]]], Callable[[S], Awaitable[None]]]:
        """Register a function as a case; the first line of its docstring is the title."""

        def register(run: Callable[[S], Awaitable[None]]) -> Callable[[S], Awaitable[None]]:
            title = (inspect.getdoc(run) or "").partition("\n")[0]
            self.add(
                Case(
                    id=id,
                    title=title,
                    section=section,
                    guarantees=guarantees,
                    needs=frozenset(needs),
                    seconds=seconds,
                    heartbeats=heartbeats,
                    run=run,
                )
            )
            return run

        return register

    def add(self, case: Case[S]) -> None:
        """Take a case.

        Raises:
            ValueError: another one has its id, or it has no title.

        """
        if case.id in self._cases or not case.title:
            raise ValueError(f"case {case.id!r} is there already, or has no title")
        self._cases[case.id] = case

    def __iter__(self) -> Iterator[Case[S]]:
        """Give all cases, in the order in which they were registered."""
        return iter(self._cases.values())

    def __len__(self) -> int:
        """Say how many cases there are."""
        return len(self._cases)

    def chosen(self, patterns: Sequence[str]) -> list[Case[S]]:
        """Return the cases that the patterns name; without patterns, all."""
        return [case for case in self if case.matches(patterns)]
