"""Cases of the session itself: title, metadata, archive, clear, forks, and what only internal readers see."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from midstream.protocol.calls import CompactResult, SessionResult
from midstream.protocol.model import TextPart
from tests.laws.case import Cases
from tests.laws.notes import Note
from tests.laws.scene import Scene

SESSIONS = Cases()


@SESSIONS()
async def the_title_changes(scene: Scene) -> AsyncGenerator[None]:
    yield
    await scene.ask(SessionResult, "sessions.update", title="Ein Gespräch")


@SESSIONS()
async def the_title_is_removed(scene: Scene) -> AsyncGenerator[None]:
    await scene.ask(SessionResult, "sessions.update", title="A talk")
    yield
    await scene.ask(SessionResult, "sessions.update", title=None)


@SESSIONS()
async def the_metadata_changes(scene: Scene) -> AsyncGenerator[None]:
    await scene.ask(SessionResult, "sessions.update", metadata={"a": 1, "b": 2})
    yield
    await scene.ask(SessionResult, "sessions.update", metadata={"b": [None, 0.5, {"c": "ü"}]})


@SESSIONS()
async def the_title_changes_in_the_middle_of_a_text(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    text = await (await turn.step().__aenter__()).text().__aenter__()
    await text.append("Half ")
    yield
    await text.append("a sentence")
    await scene.ask(SessionResult, "sessions.update", title="A talk")


@SESSIONS()
async def the_session_is_archived(scene: Scene) -> AsyncGenerator[None]:
    yield
    await scene.ask(SessionResult, "sessions.archive")


@SESSIONS()
async def the_session_is_taken_out_of_the_archive(scene: Scene) -> AsyncGenerator[None]:
    await scene.ask(SessionResult, "sessions.archive")
    yield
    await scene.ask(SessionResult, "sessions.archive", archived=False)


@SESSIONS()
async def the_approval_mode_is_to_allow(scene: Scene) -> AsyncGenerator[None]:
    yield
    await scene.mode("always-allow")


@SESSIONS()
async def the_approval_mode_is_to_ask_again(scene: Scene) -> AsyncGenerator[None]:
    await scene.mode("always-allow")
    yield
    await scene.mode("ask")


@SESSIONS()
async def the_approval_mode_changes_in_the_middle_of_a_text(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    step = await turn.step().__aenter__()
    text = await step.text().__aenter__()
    await text.append("Half ")
    yield
    await scene.mode("always-allow")
    await text.append("a sentence")
    await step.data("after", "the action stands below this message")


@SESSIONS()
async def what_was_said_is_summarized(scene: Scene) -> AsyncGenerator[None]:
    yield
    await scene.ask(CompactResult, "compact", through_sequence=2, summary="An answer came.")


@SESSIONS()
async def what_came_before_is_summarized_in_the_middle_of_a_text(scene: Scene) -> AsyncGenerator[None]:
    await scene.ask(CompactResult, "compact", through_sequence=1, summary="Something came before.")
    turn = await scene.turn()
    step = await turn.step().__aenter__()
    text = await step.text().__aenter__()
    await text.append("Half ")
    yield
    await turn.compact(3, "An answer came, and a wish to go on.")
    await text.append("a sentence")
    await step.data("after", "stored")


@SESSIONS(resets=True)
async def a_session_with_a_summary_is_cleared(scene: Scene) -> AsyncGenerator[None]:
    await scene.ask(CompactResult, "compact", through_sequence=2, summary="An answer came.")
    yield
    await scene.ask(SessionResult, "sessions.clear")


@SESSIONS(resets=True)
async def the_session_is_cleared(scene: Scene) -> AsyncGenerator[None]:
    yield
    await scene.ask(SessionResult, "sessions.clear")


@SESSIONS(resets=True)
async def the_session_goes_on_after_a_clear(scene: Scene) -> AsyncGenerator[None]:
    yield
    await scene.ask(SessionResult, "sessions.clear")
    turn = await scene.turn()
    async with turn.step() as step, step.text() as text:
        await text.append("As if nothing had been")
    await scene.finish(turn)


@SESSIONS()
async def a_fork_goes_its_own_way(scene: Scene) -> AsyncGenerator[None]:
    await scene.ask(SessionResult, "sessions.update", title="A talk", metadata={"a": 1})
    turn = await scene.turn()
    await turn.internal(TextPart(text="A hint"))
    text = await (await turn.step().__aenter__()).text().__aenter__()
    await text.append("Half a sentence")
    await scene.ask(SessionResult, "sessions.fork", new_session_id="copy")
    scene.session_id = "copy"
    yield
    await scene.turn("Somewhere else")


@SESSIONS(hidden=True)
async def an_internal_note_grows(scene: Scene) -> AsyncGenerator[None]:
    note = await Note.begin(await scene.turn())
    await note.append("Budget: ")
    yield
    await note.append("low")


@SESSIONS(hidden=True)
async def an_internal_note_ends(scene: Scene) -> AsyncGenerator[None]:
    note = await Note.begin(await scene.turn())
    await note.append("Budget: low")
    yield
    await note.done()
