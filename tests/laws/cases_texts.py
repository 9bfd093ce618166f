"""Cases of what an agent says: texts, reasoning, and the parts that come whole."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from midstream.protocol.model import ProviderMetadata
from midstream.server import Step, TextStream, Turn
from tests.laws.case import Cases
from tests.laws.scene import Scene
from tests.laws.world import pause

TEXTS = Cases()
METADATA: ProviderMetadata = {"acme": {"signature": "c2ln", "nested": [1, 2.5, None, {"a": True}]}}


async def step_of(scene: Scene) -> Step:
    """Begin a turn and a step in it."""
    turn = await scene.turn()
    return await turn.step().__aenter__()


async def text_of(step: Step, said: str = "Once ") -> TextStream:
    """Open a text in which something was said already."""
    text = await step.text().__aenter__()
    await text.append(said)
    await pause()
    return text


async def end_of(step: Step) -> None:
    """End a step, which commits it."""
    await step.__aexit__(None, None, None)


@TEXTS()
async def a_text_opens_the_agents_message(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    yield
    await step.text(provider_metadata={"acme": {"id": 1}}).__aenter__()


@TEXTS()
async def a_text_opens_behind_other_parts(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    await (await text_of(step)).done()
    yield
    await step.text().__aenter__()


@TEXTS()
async def a_text_grows(scene: Scene) -> AsyncGenerator[None]:
    text = await text_of(await step_of(scene))
    yield
    await text.append("upon a time")


@TEXTS()
async def a_text_grows_in_many_deltas(scene: Scene) -> AsyncGenerator[None]:
    text = await text_of(await step_of(scene))
    yield
    for word in ("upon ", "ä ", "ti", "\U0001f550", "me", "\n"):
        await text.append(word)
        await pause(0.02)


@TEXTS()
async def a_code_point_comes_in_halves(scene: Scene) -> AsyncGenerator[None]:
    text = await text_of(await step_of(scene))
    yield
    await text.append("\ud83d")
    await pause()
    await text.append("\ude42")


@TEXTS()
async def a_text_grows_by_more_than_a_chunk(scene: Scene) -> AsyncGenerator[None]:
    text = await text_of(await step_of(scene))
    yield
    await text.append('"ä\\' * 30_000)


@TEXTS()
async def a_text_ends(scene: Scene) -> AsyncGenerator[None]:
    text = await text_of(await step_of(scene))
    yield
    await text.done(provider_metadata=METADATA)


@TEXTS()
async def a_reasoning_opens(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    yield
    await step.reasoning().__aenter__()


@TEXTS()
async def a_reasoning_grows(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    reasoning = await step.reasoning().__aenter__()
    await reasoning.append("If so, ")
    await pause()
    yield
    await reasoning.append("then not.")


@TEXTS()
async def a_reasoning_ends(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    reasoning = await step.reasoning().__aenter__()
    await reasoning.append("If so, then not.")
    yield
    await reasoning.done()


@TEXTS()
async def two_parts_grow_in_turns(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    text, reasoning = await text_of(step), await step.reasoning().__aenter__()
    yield
    for number in range(3):
        await text.append(f"t{number} ")
        await reasoning.append(f"r{number} ")
        await pause(0.02)


@TEXTS()
async def a_step_ends(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    await text_of(step)
    yield
    await end_of(step)


@TEXTS()
async def a_step_ends_whose_texts_had_ended(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    await (await text_of(step)).done()
    yield
    await end_of(step)


@TEXTS()
async def a_second_step_begins(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    async with turn.step() as step:
        await text_of(step)
    yield
    second = await turn.step().__aenter__()
    await text_of(second, "Then ")


@TEXTS()
async def a_step_is_abandoned_that_made_its_message(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    await text_of(step)
    await step.reasoning().__aenter__()
    yield
    assert await step.abandon()


@TEXTS()
async def a_step_is_abandoned_behind_another(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    async with turn.step() as step:
        await text_of(step)
    second = await turn.step().__aenter__()
    await text_of(second, "Then ")
    yield
    assert await second.abandon()


@TEXTS()
async def a_step_is_abandoned_and_tried_again(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    async with turn.step() as step:
        await text_of(step)
    second = await turn.step().__aenter__()
    await text_of(second, "A long attempt that fails, ")
    yield
    assert await second.abandon()
    await text_of(await turn.step().__aenter__(), "and a short one")


@TEXTS()
async def a_step_that_ran_a_tool_is_abandoned(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    await text_of(step)
    await step.tool("search", input={"q": "x"})
    yield
    assert not await step.abandon()


@TEXTS()
async def a_step_boundary_is_marked(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    yield
    await step.marker()


@TEXTS()
async def a_file_comes(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    yield
    await step.file("data:image/png;base64,iVBORw0KGgo=", "image/png", filename="a.png")


@TEXTS()
async def data_comes(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    yield
    await step.data("chart", {"points": [1, -2, 0.5, 2**53 - 1], "none": None}, data_id="d1")


@TEXTS()
async def a_page_is_cited(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    yield
    await step.source_url("https://example.com/ä", title="A page")


@TEXTS()
async def a_document_is_cited(scene: Scene) -> AsyncGenerator[None]:
    step = await step_of(scene)
    yield
    await step.source_document("application/pdf", "A book", filename="book.pdf")


async def note_of(turn: Turn, scene: Scene) -> None:
    """Write into the running turn's message beside its step, as an action does."""
    del scene
    await turn.action("note", "Noted")


@TEXTS()
async def something_else_is_stored_while_a_text_streams(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    text = await text_of(await turn.step().__aenter__())
    yield
    await note_of(turn, scene)
    await text.append("upon a time")
