"""Servers that break what workers rely on (SPEC 14)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import structs

from midstream.server.sessions.outcomes import Outcomes
from midstream.server.sessions.remote import RemoteRun
from midstream.server.storage.records import AttachmentRow
from tests.conformance.mutants.mutant import mutant

MARK: Final[Any] = RemoteRun.mark


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _no_outcomes(_: object) -> bytes:
    return b""


def _one_write_less(run: RemoteRun) -> AttachmentRow:
    mark: AttachmentRow = MARK(run)
    return structs.replace(mark, n=max(0, mark.n - 1))


REMOTE: Final = (
    mutant(
        "anybody-attaches",
        "14.3",
        "of the attachments of a turn one writes (G23)",
        "attaching",
        (RemoteRun, "_check_holder", _nothing),
    ),
    mutant(
        "no-lease",
        "14.9",
        "a turn of a lost worker fails when its lease is over (G27)",
        "workers",
        (RemoteRun, "wait", _nothing),
    ),
    mutant(
        "outcomes-forgotten",
        "14.6",
        "what a write gave back is told again (G28)",
        "restarts attaching",
        (Outcomes, "encoded", _no_outcomes),
    ),
    mutant(
        "write-forgotten",
        "14.5",
        "no write is applied twice (G25)",
        "restarts attaching",
        (RemoteRun, "mark", _one_write_less),
    ),
)
"""Their names, rules, and where they are to be caught."""
