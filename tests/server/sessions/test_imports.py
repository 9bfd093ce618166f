"""Imports: a session is the same in another database, whole or not at all, and nothing of it runs."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import UNSET, structs

from midstream.protocol.digest import message_digest
from midstream.protocol.errors import AlreadyExists
from midstream.protocol.export import End, Entity, Header, RememberedInput, renamed
from midstream.protocol.lines import BadLine
from midstream.protocol.model import Message, Session, TextPart, ToolPart, Turn
from midstream.protocol.transitions import is_open
from midstream.server.sessions.imports import Import
from midstream.server.storage import store
from midstream.server.storage.database import Database
from midstream.server.storage.errors import StorageError
from tests.disk import Fault, broken_disk
from tests.server.sessions.house import Street, in_simulation
from tests.server.sessions.importing import NOW, bring, bring_older, held, opened, written
from tests.server.storage.books import running_turn, tables, text_message
from tests.whole_sessions import VERSION, Whole, wholes

Told = Callable[[Path], Coroutine[Any, Any, None]]
drawn = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])


def tell(story: Told) -> None:
    """Tell a story in a directory of its own: a drawn example must not find what another left."""
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(story(Path(directory) / "a.db"))


@drawn
@given(wholes())
def test_a_session_at_rest_is_the_same_after_export_and_import(whole: Whole) -> None:
    """Byte for byte, so its digests are too; under another id nothing but that id differs."""

    async def story(path: Path) -> None:
        async with opened(path) as database:
            assert await bring(database, written(whole)) == whole.session
            found = await held(database)
            assert written(found) == written(whole)
            digests = [message_digest(one) for one in found if isinstance(one, Message)]
            assert digests == [message_digest(one) for one in whole.messages]
            await bring(database, written(found), "other")
        async with opened(path) as database:
            assert written(await held(database)) == written(whole)
            again = [renamed(one, "other") for one in whole.entities()]
            assert written(await held(database, "other")) == written(again)

    tell(story)


@drawn
@given(wholes(at_rest=False))
def test_what_is_open_is_ended_and_nothing_else_changes(whole: Whole) -> None:
    """Under the next version; a second export and import then changes nothing more."""

    async def story(path: Path) -> None:
        async with opened(path) as database:
            await bring(database, written(whole))
            found = await held(database)
            await bring(database, written(found), "again")
            assert written(await held(database, "again")) == written([renamed(one, "again") for one in found])
        check_closed(whole, found)

    tell(story)


def check_closed(whole: Whole, found: list[Entity]) -> None:
    """Compare what is stored with what was drawn: the same, but for what was open."""
    before = whole.entities()
    assert len(found) == len(before)
    by_id = {(type(one), one.turn_id) for one in found if isinstance(one, Turn)}
    assert by_id == {(Turn, one.turn_id) for one in whole.turns}
    for one in found:
        if isinstance(one, Message):
            old = next(old for old in whole.messages if old.sequence == one.sequence)
            assert not any(is_open(part) for part in one.parts)
            assert one.state != "streaming"
            was_open = old.state == "streaming" or any(is_open(part) for part in old.parts)
            if was_open:
                assert (one.revision, one.updated_at) == (VERSION + 1, NOW)
                assert [part for part in old.parts if not is_open(part)] == [
                    part for part, was in zip(one.parts, old.parts, strict=True) if not is_open(was)
                ]
            else:
                assert one == old
        elif isinstance(one, Turn):
            old_turn = next(old for old in whole.turns if old.turn_id == one.turn_id)
            if old_turn.state == "running":
                assert one.error is not UNSET
                assert (one.state, one.error.code, one.revision) == (
                    "failed",
                    "runtime_interrupted",
                    VERSION + 1,
                )
            else:
                assert one == old_turn
        elif isinstance(one, RememberedInput):
            old_input = next(old for old in whole.inputs if old.message_id == one.message_id)
            state = "cancelled" if old_input.state == "queued" else old_input.state
            assert one == structs.replace(old_input, state=state, parts=UNSET)
        elif isinstance(one, Header):
            changed = [entity for entity in found if getattr(entity, "revision", 0) > VERSION]
            queued = [item for item in whole.inputs if item.state == "queued"]
            assert one.version == VERSION + bool(changed or queued)
            assert (one.session.running_turn_id, one.session.queue) == (UNSET, [])
            assert (one.session.revision > VERSION) == bool(changed or queued)


def export(*content: Turn | Message | RememberedInput, count: int) -> list[bytes]:
    """Lines of a session with these entities, in their order."""
    session = Session(session_id="s", revision=1, created_at=1, updated_at=2, message_count=count)
    kinds = Counter(type(one) for one in content)
    end = End(turns=kinds[Turn], messages=kinds[Message], summaries=0, inputs=kinds[RememberedInput])
    return written([Header(version=900_000, session=session), *content, end])


def remembered(message_id: str) -> RememberedInput:
    """An input that started a turn."""
    return RememberedInput(
        message_id=message_id, content_hash="h", subject="ann", delivery="auto", state="started", accepted=2
    )


ENDED = structs.replace(running_turn("t"), state="completed", finished_at=3)
ASKED = (
    b'{"message":{"message_id":"%s","session_id":"s","sequence":%d,"revision":1,"role":"agent","visibility":'
    b'"visible","created_at":1,"updated_at":1,"state":"done","parts":[{"type":"interaction","part_id":"p",'
    b'"sequence":1,"interaction_id":"i","interaction_type":"approval","status":"expired","request":{"title":'
    b'"?"},"resolved_at":2}]}}\n'
)
TWICE: dict[str, tuple[list[bytes], int, str]] = {
    "a message's id": (
        export(text_message(1), structs.replace(text_message(2), message_id="m1"), count=2),
        3,
        "message.message_id",
    ),
    "a turn's id": (export(ENDED, ENDED, count=0), 3, "turn.turn_id"),
    "an input's id": (export(remembered("a"), remembered("a"), count=0), 3, "input.message_id"),
    "an interaction's id": (
        [*export(count=2)[:1], ASKED % (b"a", 1), ASKED % (b"b", 2), *export(count=2)[1:]],
        3,
        "message.parts[0].interaction_id",
    ),
    "a turn that is not there": (
        export(ENDED, text_message(1), structs.replace(text_message(2), turn_id="x"), count=2),
        4,
        "message.turn_id",
    ),
}


@pytest.mark.parametrize("name", TWICE)
async def test_what_only_the_whole_file_shows_is_named_by_its_line_and_leaves_nothing(
    name: str, tmp_path: Path
) -> None:
    """An id that stands twice, and a turn that is not in the file."""
    lines, line, field = TWICE[name]
    lines = [
        one.replace(b'"messages":0', b'"messages":2') if name.startswith("an inter") else one for one in lines
    ]
    async with opened(tmp_path / "a.db") as database:
        with pytest.raises(BadLine) as caught:
            await bring(database, lines)
        assert (caught.value.line, caught.value.field) == (line, field)
        assert await rows(database) == EMPTY


async def rows(database: Database) -> dict[str, int]:
    """The number of rows of each table that has any."""
    return {name: count for name, count in (await database.read(tables)).items() if count}


EMPTY = {"owner": 1}
"""What a database holds that nothing was imported into."""


def many(count: int) -> list[bytes]:
    """The lines of a session of many messages."""
    return export(*(text_message(number, "x" * 50) for number in range(1, count + 1)), count=count)


async def test_a_bad_line_behind_many_batches_leaves_nothing_behind(tmp_path: Path) -> None:
    """What was stored before it is removed, and the id is free again."""
    lines = many(1_600)
    async with opened(tmp_path / "a.db") as database:
        with pytest.raises(BadLine, match=r"line 1602: end\.messages"):
            await bring(database, [*lines[:-1], lines[-1].replace(b"1600", b"1599")])
        assert await rows(database) == EMPTY
        assert (await bring(database, lines)).message_count == 1_600


async def test_nobody_sees_a_session_before_it_is_whole_and_lines_are_read_as_they_are_stored(
    tmp_path: Path,
) -> None:
    """However long the file is, a bounded part of it is in memory; the session comes with its last line."""
    ahead: list[int] = []
    async with opened(tmp_path / "a.db") as database:
        looking = apsw.Connection(str(tmp_path / "a.db"))

        def watched() -> Iterator[bytes]:
            for number, line in enumerate(many(3_000)):
                yield line
                if number and number % 100 == 0:
                    found = tables(looking)
                    ahead.append(number - found["messages"])
                    assert store.load_session(looking, "s") is None

        await bring(database, watched())
        assert max(ahead) <= 600
        assert store.load_session(looking, "s") is not None
        looking.close()


async def test_a_disk_that_fails_in_the_middle_leaves_nothing_that_anybody_sees(tmp_path: Path) -> None:
    """What is left is removed as soon as the disk works again, as that of a fork is."""
    path = tmp_path / "a.db"
    with broken_disk() as disk:
        async with opened(path, vfs=disk.name) as database:
            lines = iter(many(2_000))

            def failing() -> Iterator[bytes]:
                for number, line in enumerate(lines):
                    if number == 900:
                        disk.fail(Fault.DISK_FULL)
                    yield line

            with pytest.raises(StorageError):
                await bring(database, failing())
            disk.repair()
        async with opened(path) as database:
            assert await database.read(lambda connection: store.load_session(connection, "s")) is None
            for number in await database.read(store.sessions_to_clean):
                while await database.write(partial(store.purge, session_no=number)):
                    pass
            assert await rows(database) == EMPTY


async def test_an_id_that_is_or_was_taken_is_refused(tmp_path: Path) -> None:
    """Also that of a deleted session, which is given to nobody again."""
    async with opened(tmp_path / "a.db") as database:
        await bring(database, many(3))
        before = await held(database)
        with pytest.raises(AlreadyExists):
            await bring(database, many(2))
        assert await held(database) == before
        await database.write(
            lambda connection: connection.execute("UPDATE sessions SET status = 'deleted'").get
        )
        with pytest.raises(AlreadyExists):
            await bring(database, many(2))
        assert (await bring(database, many(2), "free")).session_id == "free"


OLD_PROMPT = (
    b'{"type":"user","message_id":"u","turn_id":"t","created_at":5,"parts":[{"type":"text","text":"Hi"}]}'
)
OLD_ANSWER = (
    b'{"type":"assistant","message_id":"a","turn_id":"t","created_at":6,"status":"streaming","parts":['
    b'{"type":"text","text":"Hel","state":"streaming"},{"type":"tool","tool_call_id":"c","tool_name":"n",'
    b'"state":"running","input":{}}]}'
)


async def test_the_older_form_comes_in_whole_and_what_streams_in_it_is_ended(tmp_path: Path) -> None:
    """Its turn has failed, as that of any session that was cut off."""
    lines = [OLD_PROMPT, OLD_ANSWER]
    async with opened(tmp_path / "a.db") as database:
        session = await bring_older(database, lines, "s")
        assert (session.message_count, session.revision, session.updated_at) == (2, 2, NOW)
        header, turn, question, answer, _ = await held(database)
        assert isinstance(header, Header)
        assert header.version == 2
        assert isinstance(turn, Turn)
        assert (turn.state, turn.revision) == ("failed", 2)
        assert isinstance(question, Message)
        assert isinstance(answer, Message)
        assert (question.revision, answer.revision, answer.state) == (1, 2, "done")
        text, tool = answer.parts
        assert isinstance(text, TextPart)
        assert isinstance(tool, ToolPart)
        assert (text.text, text.state, tool.error) == ("Hel", "done", "runtime_interrupted")


async def test_a_bad_line_of_the_older_form_leaves_nothing(tmp_path: Path) -> None:
    """Line and field are named, whatever came before."""
    good = b'{"type":"user","message_id":"u%d","created_at":5,"parts":[{"type":"text","text":"Hi"}]}'
    lines = [good % number for number in range(1_200)]
    async with opened(tmp_path / "a.db") as database:
        with pytest.raises(BadLine, match="line 1201: mood: is no field that midstream knows"):
            await bring_older(database, [*lines, good[:-1] % 1 + b',"mood":1}'], "s")
        with pytest.raises(BadLine, match=r"line 1201: message\.message_id"):
            await bring_older(database, [*lines, good % 7], "s")
        assert await rows(database) == EMPTY


@in_simulation
async def test_a_session_goes_on_where_its_export_ended(street: Street) -> None:
    """Digests are equal, versions and times go on, a repeated prompt is known, nothing starts by itself."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        async with turn.step() as step, step.text() as text:
            await text.append("answer")
        await house.complete(turn)
        begun = await house.begin("b")
        await begun.ask_approval(title="?", expires_in=0.001)
        await begun.action("job", "A job")
        await house.prompt("waits")
        lines = written(await held(house.database))
        before = await house.session()
        digests = [message_digest(message) for message in await house.messages()]
    other = Street(street.path.with_name("b.db"), street.loop)
    async with opened(other.path) as database:
        await Import(database, epoch="e" * 16, now=street.clock.wall_ms(), session_id=None).run(lines)
    async with other.house() as house:
        session = (await house.session()).session
        assert (session.running_turn_id, session.queue, session.pending_interactions) == (UNSET, [], 0)
        assert session.revision > before.session.revision
        messages = await house.messages()
        assert [message_digest(one) for one in messages[:3]] == digests[:3]
        assert not any(is_open(part) for message in messages for part in message.parts)
        assert [(await house.prompt(name)).state for name in ("a", "b", "waits")] == [
            "started",
            "started",
            "cancelled",
        ]
        recorder = await house.subscribe()
        assert recorder.replica.epoch == "e" * 16
        turn = await house.begin("new")
        assert turn.prompt.sequence == len(messages) + 1
        assert turn.prompt.revision > session.revision
        assert turn.prompt.created_at >= max(message.updated_at for message in messages)
        await house.complete(turn)
        await house.equal(recorder)
