"""Summarizing, and reading what was summarized, as a connection does."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from midstream.protocol import calls
from midstream.protocol.model import Session
from tests.server.sessions.house import House


async def compact(
    house: House, through: int, text: str = "short", *, session_id: str = "s", subject: str = "ann"
) -> calls.CompactResult:
    """Summarize up to a message."""
    params = calls.CompactParams(session_id=session_id, through_sequence=through, summary=text)
    return await house.call(calls.CompactResult, "compact", params, subject=subject)


async def segment(
    house: House,
    before: int | UnsetType = UNSET,
    *,
    limit: int = 200,
    session_id: str = "s",
    include_internal: bool = False,
) -> calls.Page:
    """A page of a segment."""
    params = calls.MessagesParams(
        session_id=session_id,
        before_sequence=before,
        limit=limit,
        segment=True,
        include_internal=include_internal,
    )
    return await house.call(calls.Page, "messages", params)


async def walk(
    house: House, *, limit: int = 200, session_id: str = "s", include_internal: bool = False
) -> list[calls.Page]:
    """Every page, from the newest back."""
    pages = [await segment(house, limit=limit, session_id=session_id, include_internal=include_internal)]
    while pages[-1].has_more:
        before = pages[-1].next_before_sequence
        pages.append(
            await segment(
                house, before, limit=limit, session_id=session_id, include_internal=include_internal
            )
        )
    return pages


async def talk(house: House, *names: str) -> None:
    """Let some turns run, each with an answer: two messages each."""
    for name in names:
        turn = await house.begin(name)
        async with turn.step() as step, step.text() as text:
            await text.append(f"answer to {name}")
        await house.complete(turn)


async def session(house: House, session_id: str = "s") -> Session:
    """The session's own state."""
    return (await house.session(session_id)).session


async def shape(house: House, *, limit: int = 200) -> list[tuple[object, str | None, list[int], bool]]:
    """What each page holds."""
    return [
        (
            page.source,
            None if page.summary is UNSET else page.summary.text,
            [message.sequence for message in page.items],
            page.cut,
        )
        for page in await walk(house, limit=limit)
    ]
