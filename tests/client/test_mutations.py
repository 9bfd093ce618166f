"""Who follows the mutations sees every change in full, or is told to read again."""

from __future__ import annotations

import asyncio

import msgspec

from midstream.client import Mutation, ReplicaReset, TextAppended
from midstream.client.replica import SessionReplica
from midstream.protocol.frames import Change, ChangeContent, MessageEntry, SessionFrame, Sync
from midstream.protocol.model import Message, TextPart
from tests.client.conversation import Conversation


def synced(conversation: Conversation) -> SessionReplica:
    """Return a replica that equals the conversation."""
    replica = SessionReplica("s")
    replica.apply_sync(conversation.reset())
    return replica


def told(replica: SessionReplica, *frames: SessionFrame) -> list[Mutation]:
    """Apply frames, and return the mutations they gave."""

    async def read() -> list[Mutation]:
        stream = replica.mutations()
        for frame in frames:
            replica.apply(frame)
        replica.end(None)
        return [mutation async for mutation in stream]

    return asyncio.run(read())


def test_a_new_message_is_told_whole_then_its_turn_then_the_session() -> None:
    """One change gives several mutations, numbered within its version."""
    conversation = Conversation()
    replica = synced(conversation)
    mutations = told(replica, conversation.user("hi", message_id="m1"))
    place = f"{conversation.epoch}:{conversation.version}"
    assert [(m.mutation_id, m.variant) for m in mutations] == [
        (f"{place}:0", "message"),
        (f"{place}:1", "turn"),
        (f"{place}:2", "session"),
    ]
    message, turn, session = mutations
    assert message.payload == conversation.messages[-1]
    assert message.message_id == "m1"
    assert turn.payload == conversation.turns["t1"]
    assert session.payload == conversation.session
    assert {m.session_id for m in mutations} == {"s"}
    assert {m.revision for m in mutations} == {conversation.version}


def test_a_message_that_lost_a_part_is_told_whole() -> None:
    """Where a sync joins an abandoned step and what came after it, the new parts do not say what is gone."""
    conversation = Conversation()
    conversation.user("hi")
    conversation.agent("a try")
    replica = synced(conversation)
    message, version = conversation.messages[-1], conversation.version
    again = TextPart(part_id="again", sequence=1, text="another", state="streaming")
    entry = MessageEntry(
        message_id=message.message_id,
        sequence=message.sequence,
        revision=version + 2,
        updated_at=message.updated_at,
        part_count=1,
        parts=[again],
    )
    payload = msgspec.structs.replace(
        conversation.catchup(version), version=version + 2, durable=version + 1, messages=[entry]
    )
    (mutation,) = told(replica, Sync(conversation.channel, payload))
    assert mutation.variant == "message"
    assert mutation.payload == replica.messages[-1]
    assert replica.messages[-1].parts == [again]


def test_a_delta_is_told_as_its_text() -> None:
    """It names message and part, and says when by the server's clock; the replica has it already."""
    conversation = Conversation()
    conversation.user("hi")
    conversation.agent()
    replica = synced(conversation)
    delta = conversation.delta("Hel")
    (mutation,) = told(replica, delta)
    message = conversation.messages[-1]
    assert mutation == Mutation(
        mutation_id=f"{conversation.epoch}:{delta.version}",
        session_id="s",
        created_at=message.created_at + delta.elapsed,
        variant="delta",
        message_id=message.message_id,
        part_id=message.parts[0].part_id,
        revision=delta.version,
        payload=TextAppended(text="Hel"),
    )
    assert replica.messages[-1] == message


def test_a_part_that_is_not_committed_is_told_as_a_part() -> None:
    """What may still be rolled back does not come as a message."""
    conversation = Conversation()
    conversation.user("hi")
    conversation.agent()
    replica = synced(conversation)
    message = conversation.messages[-1]
    second = TextPart(part_id="second", sequence=2, text="", state="streaming")
    entry = MessageEntry(
        message_id=message.message_id, sequence=message.sequence, updated_at=9, part_count=2, parts=[second]
    )
    version = conversation.version + 1
    change = Change(conversation.channel, version, False, ChangeContent(messages=[entry]))  # noqa: FBT003 - a frame's elements have no names
    (mutation,) = told(replica, change)
    assert (mutation.variant, mutation.part_id, mutation.payload) == ("part", "second", second)


def test_what_was_committed_replaces_what_was_streamed() -> None:
    """A durable change tells the complete message as it is in the replica."""
    conversation = Conversation()
    conversation.user("hi")
    conversation.agent()
    replica = synced(conversation)
    mutations = told(replica, conversation.delta("Hel"), conversation.delta("lo"), conversation.ends())
    assert [m.variant for m in mutations] == ["delta", "delta", "message", "turn", "session"]
    payload = mutations[2].payload
    assert isinstance(payload, Message)
    assert payload == conversation.messages[-1]
    assert payload == replica.messages[-1]


def test_a_sync_that_continues_tells_what_it_changed() -> None:
    """A catchup gives the messages, turns and session that are newer, each whole."""
    conversation = Conversation()
    replica = synced(conversation)
    since = conversation.version
    conversation.user("hi")
    conversation.agent("Hello")
    mutations = told(replica, Sync(conversation.channel, conversation.catchup(since)))
    assert [m.variant for m in mutations] == ["message", "message", "turn", "session"]
    assert [m.payload for m in mutations[:2]] == conversation.messages
    assert len({m.mutation_id for m in mutations}) == 4


def test_a_sync_that_replaces_everything_says_so() -> None:
    """After a reset there is one thing to do: read the messages again."""
    conversation = Conversation()
    replica = synced(conversation)
    conversation.user("hi")
    (mutation,) = told(replica, Sync(conversation.channel, conversation.reset()))
    assert (mutation.variant, mutation.payload) == ("reset", ReplicaReset(reason="synced"))
    assert replica.messages == conversation.messages


def test_a_clear_says_so() -> None:
    """Removed messages cannot be told one by one."""
    conversation = Conversation()
    conversation.user("hi")
    replica = synced(conversation)
    mutations = told(replica, conversation.cleared())
    assert [m.variant for m in mutations] == ["reset", "session"]
    assert mutations[0].payload == ReplicaReset(reason="cleared")
    assert replica.messages == []


def test_a_frame_that_changes_nothing_tells_nothing() -> None:
    """Skips, marks and old frames are no mutations."""
    conversation = Conversation()
    replica = synced(conversation)
    old = conversation.titled("x")
    replica.apply(old)
    assert told(replica, old, conversation.skip(), conversation.mark()) == []


async def test_a_slow_reader_is_told_to_read_again() -> None:
    """It never misses anything silently: one reset stands for what it did not read, and its id is unique."""
    conversation = Conversation()
    conversation.user("hi")
    conversation.agent()
    replica = synced(conversation)
    slow, quick = replica.mutations(limit=3), replica.mutations()
    for number in range(5):
        replica.apply(conversation.delta(str(number)))
    replica.end(None)
    seen = [mutation async for mutation in slow]
    assert [m.payload for m in seen] == [ReplicaReset(reason="slow"), TextAppended(text="4")]
    everything = [mutation async for mutation in quick]
    assert len(everything) == 5
    assert seen[0].mutation_id not in {m.mutation_id for m in everything}
    assert replica.messages == conversation.messages


def test_mutations_can_be_written_as_json() -> None:
    """Every payload is made of what the protocol carries."""
    conversation = Conversation()
    replica = synced(conversation)
    mutations = told(replica, conversation.user("hi"), conversation.agent(), conversation.delta("x"))
    written = [msgspec.json.decode(msgspec.json.encode(mutation)) for mutation in mutations]
    assert [line["variant"] for line in written] == [m.variant for m in mutations]
    assert written[-1]["payload"] == {"text": "x"}


def test_ids_of_mutations_are_never_used_twice() -> None:
    """Whatever a version changes, its mutations are told apart."""
    conversation = Conversation()
    replica = synced(conversation)
    frames: list[SessionFrame] = [
        *(conversation.user("1"), conversation.agent(), conversation.delta("x"), conversation.ends()),
        *(conversation.titled("t"), conversation.cleared()),
    ]
    mutations = told(replica, *frames)
    assert len({m.mutation_id for m in mutations}) == len(mutations) > len(frames)
