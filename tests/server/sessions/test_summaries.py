"""Summaries: each closes a segment, changes nothing that was said, and is what an agent is given."""

from __future__ import annotations

import asyncio

import apsw
from msgspec import UNSET

from midstream.protocol import calls
from midstream.protocol.errors import IdempotencyConflict, InvalidRequest
from midstream.protocol.limits import Limits
from midstream.protocol.model import Summary, TextPart
from midstream.server.sessions.services import Settings
from tests.server.sessions.house import House, Street, in_simulation, refusal
from tests.server.sessions.summing import compact, segment, session, shape, talk, walk
from tests.server.storage.books import tables


@in_simulation
async def test_a_summary_is_told_to_every_reader_and_changes_no_message(street: Street) -> None:
    """By the session alone; what was said, its digests and its pages are as before."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a", "b")
        recorder = await house.subscribe()
        before = await house.messages()
        made = await compact(house, 2)
        now = street.clock.wall_ms()
        assert made.summary == Summary(
            from_sequence=1, through_sequence=2, text="short", created_at=now, subject="ann"
        )
        after = await session(house)
        assert (after.summarized_through, after.revision, after.message_count) == (2, made.version, 4)
        assert await house.equal(recorder) == before


@in_simulation
async def test_a_summary_sent_again_is_the_one_that_is_there(street: Street) -> None:
    """By whomever, behind later ones and after a restart; with another text it is refused."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a", "b")
        made = await compact(house, 2)
        assert (await compact(house, 2, subject="bob")).summary == made.summary
        assert (await session(house)).revision == made.version
        later = await compact(house, 4, "later")
        assert later.summary.from_sequence == 3
    async with street.house() as house:
        assert (await compact(house, 2)).summary == made.summary
        error = await refusal(compact(house, 2, "other"))
        assert isinstance(error, IdempotencyConflict)
        assert error.details == {"field": "through_sequence", "id": "2"}
        assert (await session(house)).summarized_through == 4


@in_simulation
async def test_two_who_summarize_at_once_get_one_summary(street: Street) -> None:
    """The same text is a repeat; of two texts the first stays."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a")
        alike = await asyncio.gather(*(compact(house, 1, subject=name) for name in ("ann", "bob", "cid")))
        assert len({one.summary.subject for one in alike}) == 1
        either = await asyncio.gather(
            *(compact(house, 2, text) for text in ("x", "y")), return_exceptions=True
        )
        assert [isinstance(one, IdempotencyConflict) for one in either].count(True) == 1


@in_simulation
async def test_what_cannot_be_summarized_is_refused_by_the_field(street: Street) -> None:
    """No message, a cleared or covered one, nothing said, too much said; nothing changes."""
    async with street.house(settings=Settings(limits=Limits(summary_bytes=8))) as house:
        await house.create()
        error = await refusal(compact(house, 1))
        assert error.details == {"field": "through_sequence"}
        await talk(house, "a", "b")
        await house.clear()
        await talk(house, "c", "d")
        await compact(house, 6)
        version = (await house.session()).version
        for through in (9, 4, 5):
            error = await refusal(compact(house, through))
            assert isinstance(error, InvalidRequest), through
            assert error.field == "through_sequence"
        for text in ("", " \n", "\ud800"):
            error = await refusal(compact(house, 7, text))
            assert (error.code, error.details) == ("invalid", {"field": "summary"})
        error = await refusal(compact(house, 7, "äöüäö"))
        assert error.details == {"limit": "summary_bytes", "maximum": 8, "actual": 10}
        assert (await house.session()).version == version
        assert (await compact(house, 7, "äöüä")).summary.from_sequence == 7


@in_simulation
async def test_a_message_that_can_still_change_is_not_summarized(street: Street) -> None:
    """While it streams, or a part of it is open; what stands before it may be."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        action = await turn.action("job", "A job")
        await turn.internal(TextPart(text="hint"))
        step = await turn.step().__aenter__()
        await step.text().__aenter__()
        for through in (2, 3, 4):
            error = await refusal(compact(house, through))
            assert (error.code, error.details) == ("refused", {"reason": "message_open"})
        assert (await compact(house, 1)).summary.through_sequence == 1
        await action.complete()
        assert (await compact(house, 3)).summary.from_sequence == 2
        assert (await refusal(compact(house, 4))).code == "refused"
        await house.complete(turn)
        assert (await compact(house, 4)).summary.through_sequence == 4


@in_simulation
async def test_an_agent_is_given_the_last_summary_and_what_was_said_since(street: Street) -> None:
    """It can make one in the middle of its turn, also twice; a limit keeps the newest messages."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a", "b")
        await compact(house, 2, "first")
        turn = await house.begin("c")
        context = await turn.context()
        assert context.summary is not None
        assert (context.summary.text, context.summary.through_sequence) == ("first", 2)
        messages = await house.messages()
        assert context.messages == messages[2:]
        assert (await turn.context(limit=1)).messages == messages[4:]
        assert (await turn.context(limit=50)).messages == messages[2:]
        made = await turn.compact(4, "second")
        assert (made.from_sequence, made.through_sequence, made.subject) == (3, 4, UNSET)
        assert await turn.compact(4, "second") == made
        assert (await refusal(turn.compact(4, "other"))).code == "idempotency_conflict"
        assert (await refusal(turn.compact(3, "late"))).code == "invalid"
        context = await turn.context()
        assert (context.summary, context.messages) == (made, messages[4:])
        await turn.compact(5, "third")
        assert (await turn.context()).messages == []
        await house.complete(turn)


@in_simulation
async def test_a_clear_removes_the_summaries_with_the_messages(street: Street) -> None:
    """The next one begins behind it; the rows go, also where the server dies before."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a", "b")
        await compact(house, 3, "gone")
        recorder = await house.subscribe()
        cleared = await house.clear()
        assert cleared.summarized_through == 0
        await house.equal(recorder)
        assert await shape(house) == [("active", None, [], False)]
        await talk(house, "c")
        assert (await compact(house, 5, "new")).summary.from_sequence == 5
        turn = await house.begin("d")
        context = await turn.context()
        assert context.summary is not None
        assert context.summary.text == "new"
        assert [message.sequence for message in context.messages] == [6, 7]
        await house.complete(turn)
        assert await house.database.read(count_summaries) == 1


def count_summaries(connection: apsw.Connection) -> int:
    """Rows of the table."""
    return tables(connection)["summaries"]


@in_simulation
async def test_a_fork_has_the_summaries_of_the_segments_that_lie_in_it(street: Street) -> None:
    """Unchanged; one that reaches further is left out, and the fork goes on by itself."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a", "b", "c")
        one = (await compact(house, 2, "one")).summary
        two = (await compact(house, 4, "two")).summary
        messages = await house.messages()
        for last, expected in ((1, []), (2, [one]), (3, [one]), (4, [one, two]), (6, [one, two])):
            name = f"fork at {last}"
            asked = calls.ForkParams(
                session_id="s", new_session_id=name, message_id=messages[last - 1].message_id
            )
            made = await house.call(calls.SessionResult, "sessions.fork", asked)
            assert made.session.summarized_through == (expected[-1].through_sequence if expected else 0)
            found = [page.summary for page in await walk(house, session_id=name) if page.source == "segment"]
            assert [one for one in found[::-1] if one is not UNSET] == expected
            if last < 4:
                await compact(house, last, "its own" if last != 2 else "one", session_id=name)
        assert [page.summary for page in await walk(house)] == [two, two, one]


@in_simulation
async def test_more_summaries_than_a_batch_are_forked(street: Street) -> None:
    """None is lost where a batch ends."""
    async with street.house() as house:
        await house.create()
        await talk(house, *(f"m{number}" for number in range(20)))
        for through in range(1, 41):
            await compact(house, through, f"to {through}")
        asked = calls.ForkParams(session_id="s", new_session_id="f")
        await house.call(calls.SessionResult, "sessions.fork", asked)
        assert await walk_texts(house, "f") == [f"to {through}" for through in range(40, 0, -1)]


async def walk_texts(house: House, session_id: str) -> list[str]:
    """The texts of the summaries, the last first."""
    found = [page.summary for page in await walk(house, session_id=session_id) if page.source == "segment"]
    return [summary.text for summary in found if summary is not UNSET]


@in_simulation
async def test_a_summary_that_was_acknowledged_is_there_after_a_crash(street: Street) -> None:
    """With its place, and readers find it by their cursor."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a")
        recorder = await house.subscribe()
        turn = await house.begin("b")
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        await text.append("half")
        made = await compact(house, 2)
        await house.crash()
    async with street.house() as house:
        joined = await house.resume(recorder)
        await house.equal(joined)
        assert (await session(house)).summarized_through == 2
        assert (await segment(house, 3)).summary == made.summary


@in_simulation
async def test_summaries_go_with_their_session(street: Street) -> None:
    """Nothing of a deleted session is left."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a")
        await compact(house, 2)
        await house.call(calls.EmptyResult, "sessions.delete", calls.SessionParams(session_id="s"))
        assert (await refusal(compact(house, 2))).code == "not_found"
    async with street.house() as house:
        assert await house.database.read(count_summaries) == 0


@in_simulation
async def test_a_summary_and_a_clear_at_once_leave_one_of_two_outcomes(street: Street) -> None:
    """The summary went with the messages, or it is refused; no reader sees anything in between."""
    async with street.house() as house:
        await house.create()
        for number in range(4):
            await talk(house, f"m{number}")
            count = (await session(house)).message_count
            recorder = await house.subscribe()
            calls_at_once = [house.clear(), compact(house, count)]
            if number % 2:
                calls_at_once.reverse()
            outcomes = await asyncio.gather(*calls_at_once, return_exceptions=True)
            refused = [one for one in outcomes if isinstance(one, BaseException)]
            assert [type(one) for one in refused] in ([], [InvalidRequest])
            assert (await session(house)).summarized_through == 0
            assert await house.equal(recorder) == []
            assert (await segment(house)).summary is UNSET
