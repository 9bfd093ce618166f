"""Earlier messages join the replica without a seam, and digests prove that it is right."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import UNSET, structs

from midstream.client import IncompatibleServer, Session
from midstream.protocol.calls import MessagesParams, Page, SubscribeParams, VerifyParams, VerifyResult
from midstream.protocol.digest import message_digest
from midstream.protocol.frames import Sync
from midstream.protocol.limits import DEFAULT_LIMITS
from midstream.protocol.model import Message
from tests.client.conversation import Conversation
from tests.client.peer import PeerLink
from tests.client.stage import Stage, on_every_network


def long_conversation(messages: int = 6) -> Conversation:
    """Return a conversation of so many user messages."""
    conversation = Conversation()
    for number in range(messages):
        conversation.user(str(number), turn_id=f"t{number}")
    return conversation


def page_of(conversation: Conversation, before: int | None, limit: int) -> Page:
    """Return the page that a right server would give."""
    below = [m for m in conversation.messages if before is None or m.sequence < before]
    items = below[-limit:]
    more = len(items) < len(below)
    return Page(
        items=items,
        total=conversation.session.message_count,
        start_sequence=items[0].sequence if items else UNSET,
        end_sequence=items[-1].sequence if items else UNSET,
        next_before_sequence=items[0].sequence if more else UNSET,
        has_more=more,
        include_internal=False,
        before_sequence=UNSET if before is None else before,
        turns=[],
        epoch=conversation.epoch,
        version=conversation.version,
    )


async def opened_at_the_end(stage: Stage, conversation: Conversation) -> tuple[Session, PeerLink]:
    """Open a session with its last two messages."""
    opening = asyncio.ensure_future(stage.client().session("s", limit=2))
    link = await stage.peer.accept()
    asked = await link.asked("subscribe")
    await asked.result(conversation.subscribed(conversation.reset(last=2)))
    return await opening, link


@on_every_network
async def test_earlier_messages_are_read_page_by_page_to_the_beginning(stage: Stage) -> None:
    """Each page ends where the window begins; when there is nothing more, nothing is asked."""
    conversation = long_conversation()
    session, link = await opened_at_the_end(stage, conversation)
    assert (session.messages, session.has_earlier) == (conversation.messages[-2:], True)
    mutations = session.mutations()
    for before in (5, 3):
        loading = asyncio.ensure_future(session.load_earlier(2))
        asked = await link.asked("messages")
        assert asked.as_(MessagesParams) == MessagesParams(session_id="s", limit=2, before_sequence=before)
        await asked.result(page_of(conversation, before, 2))
        assert await loading
        mutation = await anext(mutations)
        assert mutation.variant == "reset"
    assert session.messages == conversation.messages
    assert not session.has_earlier
    assert not await session.load_earlier()
    assert await link.is_quiet()


@on_every_network
async def test_a_page_older_than_the_replica_is_brought_up_to_date(stage: Stage) -> None:
    """What changed between the page's version and now is applied to it: it joins without a seam."""
    conversation = long_conversation()
    session, link = await opened_at_the_end(stage, conversation)
    loading = asyncio.ensure_future(session.load_earlier(10))
    asked = await link.asked("messages")
    page = page_of(conversation, 5, 10)
    await link.send(conversation.titled("later"))
    await asked.result(page)
    assert await loading
    assert session.messages == conversation.messages


@on_every_network
async def test_a_page_that_does_not_fit_is_read_again(stage: Stage) -> None:
    """A page from another epoch, or from the future, is not merged; a server that never fits is at fault."""
    conversation = long_conversation()
    session, link = await opened_at_the_end(stage, conversation)
    loading = asyncio.ensure_future(session.load_earlier(10))
    asked = await link.asked("messages")
    await asked.result(structs.replace(page_of(conversation, 5, 10), epoch="00000000000000ff"))
    asked = await link.asked("messages")
    await asked.result(page_of(conversation, 5, 10))
    assert await loading
    assert session.messages == conversation.messages


@on_every_network
async def test_a_server_whose_pages_never_fit_is_at_fault(stage: Stage) -> None:
    """It is asked a bounded number of times."""
    conversation = long_conversation()
    session, link = await opened_at_the_end(stage, conversation)
    loading = asyncio.ensure_future(session.load_earlier(10))
    wrong = structs.replace(page_of(conversation, 5, 10), epoch="00000000000000ff")

    async def answer() -> None:
        while True:
            await (await link.asked("messages")).result(wrong)

    answering = asyncio.ensure_future(answer())
    with pytest.raises(IncompatibleServer, match="page"):
        await loading
    answering.cancel()
    await asyncio.wait({answering})
    assert session.messages == conversation.messages[-2:]


@on_every_network
async def test_a_page_survives_a_lost_connection(stage: Stage) -> None:
    """It is asked for again after the sync, and merged."""
    conversation = long_conversation()
    session, link = await opened_at_the_end(stage, conversation)
    loading = asyncio.ensure_future(session.load_earlier(10))
    await link.asked("messages")
    link.drop()
    conversation.titled("meanwhile")
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    await (await link.asked("messages")).result(page_of(conversation, 5, 10))
    assert await loading
    assert session.messages == conversation.messages


@on_every_network
async def test_two_who_load_at_once_get_two_pages(stage: Stage) -> None:
    """The same page twice is merged once, and the second reader goes on from there."""
    conversation = long_conversation()
    session, link = await opened_at_the_end(stage, conversation)
    loading = [asyncio.ensure_future(session.load_earlier(2)) for _ in range(2)]
    for _ in range(2):
        asked = await link.asked("messages")
        await asked.result(page_of(conversation, 5, 2))
    asked = await link.asked("messages")
    assert asked.as_(MessagesParams).before_sequence == 3
    await asked.result(page_of(conversation, 3, 2))
    assert await asyncio.gather(*loading) == [True, True]
    assert session.messages == conversation.messages


def digests(conversation: Conversation, messages: list[Message]) -> VerifyResult:
    """Return what a right server would say of these messages."""
    return VerifyResult(
        version=conversation.version,
        epoch=conversation.epoch,
        digests=[(m.sequence, m.revision, message_digest(m)) for m in messages],
    )


@on_every_network
async def test_a_replica_that_equals_the_server_is_verified_in_pages(stage: Stage) -> None:
    """Every message of the window is compared, 200 at a time."""
    conversation = long_conversation(250)
    session, link = await stage.opened(stage.client(), conversation, limit=200)
    verifying = asyncio.ensure_future(session.verify())
    for start, end in ((1, 200), (201, 250)):
        asked = await link.asked("verify")
        assert asked.as_(VerifyParams) == VerifyParams(session_id="s", from_sequence=start, to_sequence=end)
        await asked.result(digests(conversation, conversation.messages[start - 1 : end]))
    report = await verifying
    assert report
    assert report.compared == 250


@on_every_network
async def test_what_left_the_window_meanwhile_is_no_difference(stage: Stage) -> None:
    """A reset that came before the digests makes the window smaller; what is below it is not compared."""
    conversation = long_conversation(4)
    session, link = await stage.opened(stage.client(), conversation)
    verifying = asyncio.ensure_future(session.verify())
    asked = await link.asked("verify")
    conversation.titled("after")
    await link.send(Sync(conversation.channel, conversation.reset(last=2)))
    await asked.result(digests(conversation, conversation.messages))
    report = await verifying
    assert report
    assert report.compared == 2


@on_every_network
async def test_every_difference_is_reported(stage: Stage) -> None:
    """A message that differs, one that is missing here and one that is missing there are all named."""
    conversation = long_conversation(4)
    session, link = await stage.opened(stage.client(), conversation)
    verifying = asyncio.ensure_future(session.verify())
    asked = await link.asked("verify")
    right = digests(conversation, conversation.messages)
    wrong = [right.digests[0], (2, 1, "0" * 16), right.digests[2], (5, 1, "1" * 16)]
    await asked.result(structs.replace(right, digests=wrong))
    report = await verifying
    assert not report
    assert [difference.sequence for difference in report.differences] == [2, 4, 5]
    assert report.differences[1].there is None
    assert report.differences[2].here is None


@on_every_network
async def test_only_equal_versions_are_compared(stage: Stage) -> None:
    """Digests of another version say nothing, and are asked for again."""
    conversation = long_conversation(3)
    session, link = await stage.opened(stage.client(), conversation)
    verifying = asyncio.ensure_future(session.verify())
    asked = await link.asked("verify")
    before = digests(conversation, conversation.messages)
    await link.send(conversation.user("more", turn_id="t9"))
    await asked.result(before)
    asked = await link.asked("verify")
    assert asked.as_(VerifyParams) == VerifyParams(session_id="s", from_sequence=1, to_sequence=3)
    await asked.result(digests(conversation, conversation.messages[:3]))
    asked = await link.asked("verify")
    assert asked.as_(VerifyParams) == VerifyParams(session_id="s", from_sequence=4, to_sequence=4)
    await asked.result(digests(conversation, conversation.messages[3:]))
    report = await verifying
    assert (report.compared, report.differences) == (4, ())


@on_every_network
async def test_digests_above_the_replica_are_a_gap(stage: Stage) -> None:
    """The frames that led there were lost, and no mark has said so yet: so a sync comes first."""
    conversation = long_conversation(3)
    session, link = await stage.opened(stage.client(), conversation)
    verifying = asyncio.ensure_future(session.verify())
    asked = await link.asked("verify")
    conversation.titled("lost")  # and never sent
    await asked.result(digests(conversation, conversation.messages))
    await synced(link, conversation)
    await (await link.asked("verify")).result(digests(conversation, conversation.messages))
    assert (await verifying).compared == 3


@on_every_network
async def test_a_page_above_the_replica_is_a_gap(stage: Stage) -> None:
    """Likewise."""
    conversation = long_conversation()
    opening = asyncio.ensure_future(stage.client().session("s", limit=3))
    link = await stage.peer.accept()
    await (await link.asked("subscribe")).result(conversation.subscribed(conversation.reset(last=3)))
    loading = asyncio.ensure_future((await opening).load_earlier(2))
    asked = await link.asked("messages")
    page = asked.as_(MessagesParams)
    assert isinstance(page.before_sequence, int)
    conversation.titled("lost")  # and never sent
    await asked.result(page_of(conversation, page.before_sequence, 2))
    await synced(link, conversation)
    await (await link.asked("messages")).result(page_of(conversation, page.before_sequence, 2))
    assert await loading


async def synced(link: PeerLink, conversation: Conversation) -> None:
    """Answer the subscribe that follows a gap."""
    asked = await link.asked("subscribe")
    assert asked.as_(SubscribeParams).cursor is not UNSET
    await asked.result(conversation.subscribed(conversation.reset(last=3)))


@on_every_network
async def test_no_more_is_asked_than_the_server_gives_in_a_page(stage: Stage) -> None:
    """A server may allow less than what a client asks for by itself; then that is what is asked for."""
    stage.peer.limits = structs.replace(DEFAULT_LIMITS, page_messages=2)
    conversation = long_conversation()
    opening = asyncio.ensure_future(stage.client().session("s"))
    link = await stage.peer.accept()
    asked = await link.asked("subscribe")
    assert isinstance(asked.params, SubscribeParams)
    assert asked.params.limit == 2
    await asked.result(conversation.subscribed(conversation.reset(last=2)))
    session = await opening
    loading = asyncio.ensure_future(session.load_earlier())
    asked = await link.asked("messages")
    assert isinstance(asked.params, MessagesParams)
    assert asked.params.limit == 2
    await asked.result(page_of(conversation, 5, 2))
    assert await loading
    verifying = asyncio.ensure_future(session.verify())
    for _ in range(2):
        asked = await link.asked("verify")
        assert isinstance(asked.params, VerifyParams)
        low, high = asked.params.from_sequence, asked.params.to_sequence
        assert high - low < 2
        held = [(m.sequence, m.revision, message_digest(m)) for m in conversation.messages]
        digests = [digest for digest in held if low <= digest[0] <= high]
        await asked.result(
            VerifyResult(version=conversation.version, epoch=conversation.epoch, digests=digests)
        )
    assert (await verifying).compared == 4
