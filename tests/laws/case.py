"""A case: one mutation, and the state before it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from tests.laws.scene import Scene

Script = Callable[[Scene], AsyncGenerator[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """A script with one ``yield``: what stands before it makes the state, what comes after changes it.

    Attributes:
        hidden: the change shows nothing to a reader without internal messages.
        resets: what came before is void afterwards, so that whoever was away gets a ``reset``.
        restarts: the server ends in it, so readers lose their connections.
    """

    name: str
    script: Script
    hidden: bool = False
    resets: bool = False
    restarts: bool = False


class Cases(dict[str, Case]):
    """Cases by name; each module of cases fills one."""

    def __call__(
        self, *, hidden: bool = False, resets: bool = False, restarts: bool = False
    ) -> Callable[[Script], Script]:
        """Register the script that is decorated."""

        def register(script: Script) -> Script:
            name = script.__name__
            self[name] = Case(name, script, hidden, resets, restarts)
            return script

        return register


class Playing:
    """A case while it is played."""

    def __init__(self, case: Case, scene: Scene) -> None:
        self.case = case
        self._script = case.script(scene)

    async def before(self) -> None:
        """Make the state that is to change."""
        await anext(self._script)

    async def change(self) -> None:
        """Change it."""
        try:
            await anext(self._script)
        except StopAsyncIteration:
            return
        raise AssertionError(f"the case {self.case.name} has more than one change")
