"""Copies a database while its server runs, and looks whether all is well in one."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.failure import CommandFailed
from midstream.cli.inspect import read_only
from midstream.server.storage import checks
from midstream.server.storage.copies import copy
from midstream.server.storage.errors import CopyFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_PROBLEMS = 50
"""Problems that are named; a file with more is not repaired by hand."""


def backup(source: Path, destination: Path) -> str:
    """Copy a database into a new file, all of it at one moment, and say what is in the copy.

    The server that owns it, if one does, is not disturbed. The copy is checked before it has its name.

    Raises:
        CommandFailed: there is no such database, or the copy could not be made; nothing is left of it.

    """
    with read_only(source, is_held=False, any_schema=True) as connection:
        try:
            size = copy(connection, destination.absolute(), check=True)
        except CopyFailed as failed:
            raise CommandFailed(str(failed)) from failed
    with read_only(destination, any_schema=True) as copied:
        held = checks.counts(copied)
    return f"Copied {source} to {destination}: {_held(held)}, {size:,} bytes. It was checked and is sound."


def check(database: Path) -> Iterator[str]:
    """Yield what is wrong with a database, then what is in it.

    Raises:
        CommandFailed: at the end, where something is wrong; or there is no such database.

    """
    with read_only(database) as connection:
        found = list(islice(checks.problems(connection), MOST_PROBLEMS + 1))
        yield from found[:MOST_PROBLEMS]
        if len(found) > MOST_PROBLEMS:
            yield "... and more"
        if found:
            raise CommandFailed(
                f"{database} is damaged. Stop its server, put the last backup in its place, and keep"
                " this file to look at."
            )
        yield f"{database} is sound: {_held(checks.counts(connection))}."


def _held(held: checks.Counts) -> str:
    return f"{held.sessions:,} sessions, {held.messages:,} messages, {held.parts:,} parts"
