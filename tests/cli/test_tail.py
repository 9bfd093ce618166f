"""A mutation reads as one line, whatever it is about; as JSON it is whole."""

import asyncio
import io
import json

import msgspec
import pytest

from midstream.cli.failure import MISUSED, CommandFailed
from midstream.cli.tail import readable, tail
from midstream.client.mutations import Mutation, Payload, ReplicaReset, TextAppended, Variant
from midstream.protocol.model import ActionPart, Message, Session, StepStartPart, TextPart, Turn
from tests.cli.conftest import Join, Serve

MESSAGE = Message(
    message_id="m",
    session_id="s",
    sequence=3,
    revision=7,
    role="agent",
    visibility="visible",
    created_at=0,
    updated_at=0,
    state="done",
    parts=[],
)
TURN = Turn(turn_id="t", revision=7, state="running", phase="streaming", phase_since=0, started_at=0)
SESSION = Session(
    session_id="s",
    revision=7,
    metadata={},
    created_at=0,
    updated_at=0,
    first_sequence=1,
    message_count=3,
    queue=["a"],
    pending_interactions=0,
)
ACTION = ActionPart(part_id="p", action_id="a", action_type="x", state="completed", title="Backed\x1b[2J up")


@pytest.mark.parametrize(
    ("variant", "payload", "about", "line"),
    [
        ("delta", TextAppended(text="a\nb\x1b"), "p", '       7 delta   p "a\\nb\\u001b"'),
        ("message", MESSAGE, "", "       7 message m agent #3 done, 0 parts"),
        ("turn", TURN, "", "       7 turn    m t running (streaming)"),
        ("session", SESSION, "", "       7 session m 3 messages, 1 waiting"),
        ("reset", ReplicaReset(reason="synced"), "", "       7 reset   m synced"),
        ("part", TextPart(part_id="p", text="hi", state="done"), "p", '       7 part    p "hi" done'),
        ("part", ACTION, "p", "       7 part    p Backed[2J up"),
        ("part", StepStartPart(part_id="p"), "p", "       7 part    p StepStartPart"),
    ],
)
def test_each_mutation_is_one_line(variant: Variant, payload: Payload, about: str, line: str) -> None:
    """No text of a message can break the line or steer the terminal."""
    mutation = Mutation(
        mutation_id="e:7",
        session_id="s",
        created_at=0,
        variant=variant,
        message_id="m",
        part_id=about or None,
        revision=7,
        payload=payload,
    )
    assert readable(mutation) == line


class Lines(io.StringIO):
    """A file in memory that a test can wait for."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self._changed = asyncio.Event()

    def flush(self) -> None:
        """Tell that there is more."""
        self._changed.set()

    async def until(self, text: str) -> None:
        """Wait until the text was written."""
        while text not in self.getvalue():
            self._changed.clear()
            await self._changed.wait()


async def test_a_turn_is_followed_as_json_to_its_end(serve: Serve, join: Join) -> None:
    """Versions ascend, and what is written at last is what the client's replica holds."""
    async with serve() as server:
        person = await join(server.url)
        out, notes = Lines(), Lines()
        tailing = asyncio.create_task(
            tail(server.url, "s", as_json=True, include_internal=False, out=out, notes=notes)
        )
        await notes.until("Following session s")
        await person.chat.typed("hello")
        await out.until('"state":"completed"')
        tailing.cancel()
        await asyncio.gather(tailing, return_exceptions=True)
    mutations = [json.loads(line) for line in out.getvalue().splitlines()]
    revisions = [mutation["revision"] for mutation in mutations]
    assert revisions == sorted(revisions)
    assert {"message", "part", "delta", "turn", "session"} >= {mutation["variant"] for mutation in mutations}
    told = {item["message_id"]: item["payload"] for item in mutations if item["variant"] == "message"}
    held = {
        message.message_id: json.loads(msgspec.json.encode(message)) for message in person.session.messages
    }
    assert told == held


async def test_a_session_that_is_not_there_cannot_be_followed(serve: Serve) -> None:
    """It is not made either: who watches changes nothing."""
    async with serve() as server:
        with pytest.raises(CommandFailed, match="There is no session 'nobody'") as caught:
            await tail(server.url, "nobody", as_json=True, include_internal=False, out=Lines(), notes=Lines())
        assert caught.value.code == MISUSED
