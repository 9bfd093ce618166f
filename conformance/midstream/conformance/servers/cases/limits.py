"""Limits of SPEC 11.2 that calls can pass: each refused by name, and nothing cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.book import CallRefused
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case


@case("limits.sizes", "11.2", "G16")
async def what_is_too_long_is_refused_by_name(scene: Scene) -> None:
    """A title, metadata, a signal, an id and a summary above their limits are `limit_exceeded`, with the limit."""
    peer = await scene.open()
    session = await scene.session(peer)
    here = {"session_id": session}
    tries: list[tuple[str, str, Callable[[int], Map]]] = [
        ("title_bytes", "sessions.update", lambda n: {**here, "title": "x" * n}),
        ("metadata_bytes", "sessions.update", lambda n: {**here, "metadata": {"x": "x" * n}}),
        ("signal_bytes", "signal", lambda n: {**here, "name": "n", "data": "x" * n}),
        ("summary_bytes", "compact", lambda n: {**here, "through_sequence": 1, "summary": "x" * n}),
    ]
    for limit, method, params in tries:
        maximum = peer.limit(limit)
        if maximum < peer.limit("frame_bytes") // 2:
            await peer.refused("limit_exceeded", method, params(maximum + 1), limit=limit, maximum=maximum)
    if peer.limit("session_id_bytes") < 256:
        await peer.refused("limit_exceeded", "messages", {"session_id": "é" * 128}, limit="session_id_bytes")


@case("limits.exact", "11.2")
async def what_just_fits_is_taken(scene: Scene) -> None:
    """A title and a summary of exactly their limit are taken whole."""
    peer = await scene.open()
    title = "x" * peer.limit("title_bytes")
    session = await scene.session(peer, title=title)
    expect("the title", (await peer.call("sessions.get", session_id=session))["session"]["title"], title)


@case("limits.page", "7.3", "G14", needs=["agent"])
async def a_page_ends_early_at_page_bytes(scene: Scene) -> None:
    """A page that would pass `page_bytes` ends early, and the walk goes on behind it without a hole."""
    peer = await scene.open()
    size = peer.limit("page_bytes") // 3
    if size * 2 > peer.limit("frame_bytes"):
        size = peer.limit("frame_bytes") // 3
    count = peer.limit("page_bytes") // size + 2
    if count > 40:
        return
    session = await scene.session(peer)
    for number in range(count):
        answer = await scene.prompt(peer, session, "x" * size, message_id=f"m{number}", delivery="queue")
        await peer.call("stop", session_id=session, turn_id=answer["turn_id"], cancel_queue="none")
    page = await peer.call("messages", session_id=session, limit=min(200, count))
    require(len(page["items"]) < count and page["has_more"], "the page ends early", seen=len(page["items"]))
    items = await scene.copy(peer, session)
    expect(
        "messages in the walk",
        [one["message_id"] for one in items if one["role"] == "user"],
        [f"m{n}" for n in range(count)],
    )


@case("limits.calls-in-flight", "11.2", "G16")
async def too_many_calls_are_refused_for_now(scene: Scene) -> None:
    """Calls above `calls_in_flight` are `overloaded`, named and retryable; all others are answered."""
    peer = await scene.open()
    session = await scene.session(peer)
    count = min(2_000, peer.limit("calls_in_flight") * 3)
    ids = [await peer.begin("messages", session_id=session, limit=1) for _ in range(count)]
    refused = 0
    for id in ids:
        try:
            await peer.answer(id)
        except CallRefused as error:
            expect("the refusal", (error.info["code"], error.info["retryable"]), ("overloaded", True))
            refused += 1
    require(refused < count, "some are answered", seen=(refused, count))
    await asyncio.sleep(1.1 if peer.limit("calls_per_second") < count else 0)
    await peer.call("messages", session_id=session, limit=1)


@case("limits.page-messages", "11.2", "G16")
async def a_range_that_is_too_long_is_refused(scene: Scene) -> None:
    """A `verify` of more than `page_messages` messages is `limit_exceeded`, by name."""
    peer = await scene.open()
    session = await scene.session(peer)
    params = {"session_id": session, "from_sequence": 1, "to_sequence": 201}
    await peer.refused("limit_exceeded", "verify", params, limit="page_messages")
