"""What an agent is to know of the conversation: the last summary, and the messages behind it (SPEC 7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from midstream.protocol.agents import Context
from midstream.protocol.calls import MessagesParams, Page

if TYPE_CHECKING:
    from midstream.client.exchange import Exchange


async def read_context(exchange: Exchange, session_id: str, limit: int | None) -> Context:
    """Return the session's last summary and the newest messages behind it, whole, internal ones included."""
    most = exchange.limits.page_messages
    pages: list[Page] = []
    found = 0
    before: int | msgspec.UnsetType = UNSET
    while not pages or (pages[-1].cut and (limit is None or found < limit)):
        params = MessagesParams(
            session_id=session_id,
            limit=most if limit is None else max(1, min(most, limit - found)),
            before_sequence=before,
            include_internal=True,
            segment=True,
        )
        page = await exchange.ask("messages", params, Page, repeatable=True)
        if pages and page.summary != pages[0].summary:
            # somebody summarized meanwhile: what was read is of two contexts
            pages, found, before = [], 0, UNSET
            continue
        pages.append(page)
        found += len(page.items)
        before = page.next_before_sequence
    messages = [message for page in reversed(pages) for message in page.items]
    summary = pages[0].summary
    return Context(summary=None if summary is UNSET else summary, messages=[] if limit == 0 else messages)
