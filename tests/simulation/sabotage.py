"""Guarantees that are broken on purpose, to see that the simulation notices.

Each sabotage replaces one piece of the server or the client by one that is a little wrong, in a way that
somebody might really get it wrong. `python -m tests.simulation.sabotage` says after how many schedules each
is found.
"""

import asyncio
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final
from unittest.mock import patch

from msgspec import structs

from midstream.agents.resumption import Resumption
from midstream.protocol.merge import Replica
from midstream.protocol.model import InteractionPart
from midstream.protocol.window import Window
from midstream.server.sessions import forks, history, interactions, turns, writes
from midstream.server.sessions.draft import Draft
from midstream.server.sessions.outcomes import Outcomes
from midstream.server.sessions.projection import OpenMessage
from midstream.server.sessions.reading import Reading
from midstream.server.sessions.registry import Registry
from midstream.server.sessions.remote import RemoteRun
from midstream.server.sessions.state import LoadedState
from midstream.server.sessions.versions import Versions
from midstream.server.storage import messages
from midstream.server.storage.errors import StorageError
from midstream.server.storage.records import AttachmentRow, PartRow
from midstream.worker.ledger import Ledger
from tests.simulation.schedule import REMOTE_SEEDS
from tests.simulation.volume import first_failure

LIMIT: Final = 500
"""Schedules in which a sabotage must be found."""

Patch = Any
"""What `patch.object` returns; its type has no public name."""


async def _store_later(state: LoadedState, write: object) -> None:
    """Let the commit happen some time, and do not wait for it."""

    async def some_time() -> None:
        with suppress(StorageError):
            await STORE(state, write)

    asyncio.get_running_loop().create_task(some_time())


def _begin_at_the_last_commit(versions: Versions, row: Any, **options: Any) -> None:  # noqa: ANN401 - passed on
    BEGIN(versions, row, **options)
    versions.published = row.version


async def _no_such_input(*_: object) -> tuple[None, bool]:
    return None, False


async def _leave_behind(*_: object) -> None:
    """Answer without bringing the caller up before."""


def _any_answer_repeats(part: InteractionPart, *_: object, **__: object) -> bool:
    return part.status == "resolved"


def _after_and_one_more(text: object, version: int) -> str:
    return str(AFTER(text, version - 1))


def _changed_in_the_store(*arguments: Any, **options: Any) -> object:  # noqa: ANN401 - passed on
    return CHANGED(*arguments, **{**options, "always": ()})


def _parts_as_they_were(message: Any, opened: OpenMessage | None) -> list[PartRow]:  # noqa: ANN401 - passed on
    known = [] if opened is None else opened.part_revisions
    return [
        (sequence, number, known[number - 1] if number <= len(known) else revision, body)
        for sequence, number, revision, body in UNSTORED(message, opened)
    ]


def _only_what_the_draft_has(message: Any, opened: object) -> object:  # noqa: ANN401 - passed on
    del opened
    return UNSTORED(message, None)


def _room_for_a_thousand(_: object) -> int:
    return 1_000


def _never(_: object) -> bool:
    return False


def _drop_nothing(*_: object) -> tuple[str, ...]:
    return ()


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _no_outcomes(_: object) -> bytes:
    return b""


def _one_write_less(run: RemoteRun) -> AttachmentRow:
    mark = MARK(run)
    return structs.replace(mark, n=max(0, mark.n - 1))


def _forget_all(ledger: Ledger, durable: int) -> None:
    del durable
    STORED(ledger, ledger.last)


STORE: Final = LoadedState.__dict__["_store"]
BEGIN: Final = Versions.__init__
TEXT: Final = vars(history)["_Text"]
AFTER: Final = TEXT.after
CHANGED: Final = messages.changed_since
UNSTORED: Final = vars(writes)["_unstored_parts"]
MARK: Final = RemoteRun.mark
STORED: Final = Ledger.stored

SABOTAGES: Final[dict[str, Patch]] = {
    "publish before the commit": patch.object(LoadedState, "_store", _store_later),
    "give versions again after a crash": patch.object(Versions, "__init__", _begin_at_the_last_commit),
    "publish above the ceiling": patch.object(Versions, "room", _room_for_a_thousand),
    "end parts without a new revision": patch.object(writes, "_unstored_parts", _parts_as_they_were),
    "look for no earlier prompt": patch.object(Reading, "input", _no_such_input),
    "take any answer for a repeat": patch.object(interactions, "is_repeat", _any_answer_repeats),
    "start no waiting input": patch.object(turns, "start_waiting", _nothing),
    "let a message stream on after its turn": patch.object(turns, "close_streaming", _nothing),
    "replay one version too many": patch.object(TEXT, "after", _after_and_one_more),
    "catch up from the store alone": patch.object(messages, "changed_since", _changed_in_the_store),
    "store only what a commit itself changes": patch.object(
        writes, "_unstored_parts", _only_what_the_draft_has
    ),
    "answer who is behind without a sync": patch.object(LoadedState, "bring_up", _leave_behind),
    "leave parts of a fork open": patch.object(forks, "is_open", _never),
    "keep subscribers who left": patch.object(Registry, "leave", _nothing),
    "see no gap": patch.object(Replica, "_misplaced", _nothing),
    "drop nothing after a clear": patch.object(Window, "drop_below", _drop_nothing),
}
"""By what is broken."""

REMOTE: Final[dict[str, Patch]] = {
    "store how far a worker came ahead of its text": patch.object(Draft, "take_unstored", _nothing),
    "store one write less than was taken": patch.object(RemoteRun, "mark", _one_write_less),
    "store nothing of what workers were answered": patch.object(Outcomes, "encoded", _no_outcomes),
    "let any worker attach, whatever its generation": patch.object(RemoteRun, "_check_holder", _nothing),
    "let no lease run": patch.object(RemoteRun, "wait", _nothing),
    "ask again what another process asked": patch.object(Resumption, "asked", _nothing),
    "keep no writes that are not on disk": patch.object(Ledger, "stored", _forget_all),
}
"""Likewise, where workers run the turns."""


@contextmanager
def sabotaged(name: str) -> Generator[None]:
    """Break one guarantee for a while."""
    with (SABOTAGES | REMOTE)[name]:
        yield


def found_by(name: str, *, limit: int = LIMIT) -> int | None:
    """Return the first seed whose schedule fails under a sabotage; none within the limit."""
    first = REMOTE_SEEDS if name in REMOTE else 0
    with sabotaged(name):
        failure = first_failure(range(first + 1, first + limit + 1))
    return None if failure is None else failure[0]


def main() -> int:
    """Print after how many schedules each sabotage is found; return 1 if one is not."""
    seeds = {name: found_by(name) for name in SABOTAGES | REMOTE}
    for name, seed in seeds.items():
        sys.stdout.write(f"{name}: {'not found' if seed is None else f'found by schedule {seed}'}\n")
    return int(None in seeds.values())


if __name__ == "__main__":
    sys.exit(main())
