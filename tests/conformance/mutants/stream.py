"""Servers that break the stream of a session, its syncs, its pages or its digests (SPEC 1.3, 4, 5, 7)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msgspec import structs

from midstream.protocol.calls import VerifyResult
from midstream.protocol.digest import message_digest
from midstream.server.sessions import entries, history, replay
from midstream.server.sessions.draft import Draft
from midstream.server.sessions.projection import Projection
from midstream.server.sessions.reading import Reading
from midstream.server.sessions.state import LoadedState
from midstream.server.sessions.stream import Stream
from midstream.server.sessions.versions import Versions
from midstream.server.storage import messages, rows
from midstream.server.storage.errors import StorageError
from tests.conformance.mutants.mutant import mutant

STORE: Final[Any] = LoadedState.__dict__["_store"]
BEGIN: Final[Any] = Versions.__init__
TAKE: Final[Any] = Versions.take
SEND: Final[Any] = Stream.send
PUBLISH: Final[Any] = Stream.__dict__["_publish"]
TEXT: Final[Any] = vars(history)["_Text"]
AFTER: Final[Any] = TEXT.after
CHANGED: Final[Any] = messages.changed_since
PAGE: Final[Any] = messages.page
FINISH: Final[Any] = Draft.finish
LATE_SECONDS = 0.15


async def _store_later(state: LoadedState, write: object) -> None:
    async def some_time() -> None:
        await asyncio.sleep(LATE_SECONDS)
        with suppress(StorageError):
            await STORE(state, write)

    asyncio.get_running_loop().create_task(some_time())


def _begin_at_the_last_commit(versions: Versions, row: Any, **options: Any) -> None:  # noqa: ANN401 - passed on
    BEGIN(versions, row, **options)
    versions.published = row.version


def _skip_one(versions: Versions) -> int:
    TAKE(versions)
    return int(TAKE(versions))


def _send_a_little_later(stream: Stream) -> None:
    asyncio.get_running_loop().call_later(0.01, SEND, stream)


def _publish_no_skips(stream: Stream, full: Any, visible: Any) -> None:  # noqa: ANN401 - passed on
    if visible is full:
        PUBLISH(stream, full, visible)
        return
    if getattr(stream, "_visible") is None:  # noqa: B009 - it is private
        setattr(stream, "_visible", getattr(stream, "_full").copy())  # noqa: B009, B010 - likewise
    getattr(stream, "_full").append(full)  # noqa: B009 - likewise


def _after_and_one_more(text: object, version: int) -> str:
    return str(AFTER(text, version - 1))


def _changed_in_the_store(*arguments: Any, **options: Any) -> object:  # noqa: ANN401 - passed on
    return CHANGED(*arguments, **{**options, "always": ()})


def _more_where_the_page_is_full(*arguments: Any, **options: Any) -> object:  # noqa: ANN401 - passed on
    found, _ = PAGE(*arguments, **options)
    return found, len(found) == options["limit"]


def _leave_the_revision_of_turns(draft: Draft, version: int) -> Any:  # noqa: ANN401 - passed on
    finished = FINISH(draft, version)
    turns = [structs.replace(turn, revision=1) for turn in finished.turns]
    running = finished.turn and structs.replace(finished.turn, revision=1)
    return structs.replace(finished, turns=turns, turn=running)


async def _digest_what_is_stored(reading: Reading, params: Any) -> VerifyResult:  # noqa: ANN401 - passed on
    span = getattr(reading, "_span")  # noqa: B009 - it is private
    read = span(params.from_sequence, params.to_sequence, include_internal=params.include_internal)

    def digest(connection: Any) -> list[tuple[int, int, str]]:  # noqa: ANN401 - passed on
        whole = [rows.whole_message(one) for one in read(connection)]
        return [(one.sequence, one.revision, message_digest(one)) for one in whole]

    digests = await getattr(reading, "_database").read(partial(digest))  # noqa: B009 - it is private
    versions = getattr(reading, "_stream").versions  # noqa: B009 - it is private
    return VerifyResult(version=versions.published, epoch=versions.epoch, digests=digests)


def _see_all(*_: object, **__: object) -> bool:
    return True


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


async def _always(*_: object) -> bool:
    return True


async def _never_found(*_: object, **__: object) -> None:
    """Find nothing that was missed."""


def _no_turns(*_: object) -> list[Any]:
    return []


def _as_stored(_: object, stored: Any) -> Any:  # noqa: ANN401 - passed on
    return stored


async def _leave_behind(*_: object) -> None:
    """Answer without bringing the caller up before."""


STREAM: Final = (
    mutant(
        "published-before-commit",
        "9",
        "what is durable was committed before it was sent (G12)",
        "streaming writes restarts",
        (LoadedState, "_store", _store_later),
    ),
    mutant(
        "versions-again",
        "2.7",
        "versions are not used twice, over a crash neither (G4)",
        "restarts",
        (Versions, "__init__", _begin_at_the_last_commit),
    ),
    mutant(
        "version-skipped", "1.3", "versions have no holes (G6)", "streaming", (Versions, "take", _skip_one)
    ),
    mutant(
        "answers-overtake",
        "3.7",
        "an answer stands at its version (G8)",
        "pages subscribing",
        (Stream, "send", _send_a_little_later),
    ),
    mutant(
        "skip-missing",
        "3.9",
        "what is hidden is a skip (G6)",
        "streaming",
        (Stream, "_publish", _publish_no_skips),
    ),
    mutant(
        "internal-leaks",
        "8.7",
        "internal messages are shown to nobody else (G20)",
        "streaming",
        (entries, "is_seen", _see_all),
        (replay, "is_seen", _see_all),
    ),
    mutant(
        "replays-one-too-many",
        "5.1",
        "a sync carries what lies above the cursor (G7)",
        "catching-up",
        (TEXT, "after", _after_and_one_more),
    ),
    mutant(
        "catches-up-from-disk",
        "5.1",
        "a catchup shows what is live, too (G7)",
        "catching-up restarts",
        (messages, "changed_since", _changed_in_the_store),
        (Stream, "replay", _nothing),
    ),
    mutant(
        "paced-unanswered",
        "3.7",
        "a sync comes before the answer of who is behind (G8)",
        "slow catching-up",
        (LoadedState, "bring_up", _leave_behind),
    ),
    mutant(
        "parts-kept",
        "8.3",
        "parts that were undone are dropped (`part_count`)",
        "catching-up",
        (Draft, "truncate", _nothing),
    ),
    mutant(
        "revision-repeated",
        "2.7",
        "what changes has a new revision (G5)",
        "streaming prompts",
        (Draft, "finish", _leave_the_revision_of_turns),
    ),
    mutant(
        "repair-unrevised",
        "9",
        "what a crash takes back has a new revision (R5)",
        "restarts",
        (Draft, "touch_parts", _nothing),
    ),
    mutant(
        "has-more-wrong",
        "7.3",
        "`has_more` is true where more may be seen (G14)",
        "pages",
        (messages, "page", _more_where_the_page_is_full),
    ),
    mutant(
        "digest-of-the-stored",
        "5.6",
        "`verify` digests what is shown now",
        "pages streaming",
        (Reading, "digests", _digest_what_is_stored),
    ),
    mutant(
        "cursors-trusted",
        "5.3",
        "a cursor that is not known leads to a reset",
        "catching-up",
        (Reading, "_lies_in_known_epoch", _always),
    ),
    mutant(
        "always-resets",
        "5.1",
        "what was missed a moment ago is replayed",
        "catching-up subscribing",
        (Reading, "_missed", _never_found),
    ),
    mutant(
        "turns-left-out",
        "7.3",
        "a page brings the turns of its items",
        "pages",
        (Reading, "_turns_of", _no_turns),
    ),
    mutant(
        "messages-as-stored",
        "7.4",
        "pages and messages show what is live",
        "pages catching-up",
        (Projection, "overlay", _as_stored),
    ),
    mutant(
        "phase-never-changes",
        "2.5",
        "the phase says what the turn does",
        "writes",
        (Draft, "set_phase", _nothing),
    ),
)
"""Their names, rules, and where they are to be caught."""
