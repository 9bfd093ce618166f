"""Pages of segments: what each summary closed, from the active one back."""

from __future__ import annotations

from random import Random

from msgspec import UNSET

from midstream.agents import Turn
from midstream.protocol import calls
from midstream.protocol.model import Message, TextPart
from tests.server.sessions.house import House, Street, in_simulation
from tests.server.sessions.summing import compact, segment, session, shape, talk, walk


@in_simulation
async def test_pages_of_segments_have_what_each_summary_closed(street: Street) -> None:
    """The active one first, then back, one segment a page; a long one is cut, and says so."""
    async with street.house() as house:
        await house.create()
        assert await shape(house) == [("active", None, [], False)]
        await talk(house, "a", "b", "c", "d")
        assert await shape(house) == [("active", None, [1, 2, 3, 4, 5, 6, 7, 8], False)]
        await compact(house, 2, "one")
        await compact(house, 7, "two")
        assert await shape(house) == [
            ("active", "two", [8], False),
            ("segment", "two", [3, 4, 5, 6, 7], False),
            ("segment", "one", [1, 2], False),
        ]
        assert await shape(house, limit=3) == [
            ("active", "two", [8], False),
            ("segment", "two", [5, 6, 7], True),
            ("segment", "two", [3, 4], False),
            ("segment", "one", [1, 2], False),
        ]
        await compact(house, 8, "three")
        assert (await shape(house))[:2] == [("active", "three", [], False), ("segment", "three", [8], False)]
        from_the_middle = await segment(house, 5)
        assert [message.sequence for message in from_the_middle.items] == [3, 4]
        assert from_the_middle.next_before_sequence == 3
        assert from_the_middle.total == 8


@in_simulation
async def test_a_page_that_is_not_of_a_segment_says_nothing_of_them(street: Street) -> None:
    """The usual paging is as it was before there were summaries."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a", "b")
        before = await house.page()
        await compact(house, 2)
        page = await house.page()
        assert page.items == before.items
        assert (page.source, page.summary, page.cut) == (UNSET, UNSET, False)


@in_simulation
async def test_a_segment_of_hidden_messages_is_an_empty_page_that_leads_on(street: Street) -> None:
    """Its summary is shown all the same, and `has_more` counts what the reader may see."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        for text in ("one", "two"):
            await turn.internal(TextPart(text=text))
        await compact(house, 1, "said")
        await compact(house, 3, "hidden")
        pages = await walk(house)
        shown = [([one.sequence for one in page.items], page.summary) for page in pages]
        assert [items for items, _ in shown] == [[], [], [1]]
        assert [page.next_before_sequence for page in pages] == [4, 2, UNSET]
        everything = await walk(house, include_internal=True)
        assert [[one.sequence for one in page.items] for page in everything] == [[], [2, 3], [1]]
        await house.complete(turn)


@in_simulation
async def test_segments_visit_each_message_once_whatever_was_summarized(street: Street) -> None:
    """Against a model: a list of numbers, cut where a summary was made, for drawn lives of sessions."""
    random = Random(7)
    async with street.house() as house:
        for life in range(6):
            name = f"life {life}"
            await house.create(name)
            closed = await live(house, random, name)
            for internal in (False, True):
                for limit in (1, 2, 3, 200):
                    pages = await walk(house, limit=limit, session_id=name, include_internal=internal)
                    hold(pages, await seen(house, name, include_internal=internal), closed, limit)


async def live(house: House, random: Random, name: str) -> list[int]:
    """Say things, hidden ones too, and summarize now and then; give the numbers that close a segment."""
    closed: list[int] = []
    turn: Turn | None = None
    for number in range(1, 13):
        if turn is None or random.random() < 0.3:  # a chance
            if turn is not None:
                await house.complete(turn)
            turn = await house.begin(f"m{number}", name)
        else:
            await turn.internal(TextPart(text=str(number)))
        count = (await session(house, name)).message_count
        through = random.randint(1, count)
        if random.random() < 0.4 and through > (closed[-1] if closed else 0):  # a chance
            await compact(house, through, f"to {through}", session_id=name)
            closed.append(through)
    assert turn is not None
    await house.complete(turn)
    return closed


async def seen(house: House, name: str, *, include_internal: bool) -> list[Message]:
    """What the usual paging shows."""
    return (await house.page(name, include_internal=include_internal)).items


def hold(pages: list[calls.Page], shown: list[Message], closed: list[int], limit: int) -> None:
    """Compare pages of segments with the numbers that they must hold."""
    walked = [message for page in reversed(pages) for message in page.items]
    assert walked == shown
    for page in pages:
        assert len(page.items) <= limit
        last = closed[-1] if closed else 0
        assert page.summary is UNSET if not closed else page.summary is not UNSET
        end = 2**53
        if page.source == "segment":
            assert page.summary is not UNSET
            end = page.summary.through_sequence
            assert end in closed
        elif page.summary is not UNSET:
            assert page.summary.through_sequence == last
        start = 1 + max((one for one in closed if one < end), default=0)
        mine = [one.sequence for one in shown if start <= one.sequence <= end]
        numbers = [message.sequence for message in page.items]
        assert numbers == [number for number in mine if number in numbers]
        assert page.cut == bool(numbers and mine[0] < numbers[0])
        below = [one for one in shown if one.sequence < (numbers[0] if numbers else start)]
        assert page.has_more == bool(below)
