"""Sessions: made, changed, archived, cleared, forked, deleted (SPEC 7.11, 10; G4, G19, G22)."""

from __future__ import annotations

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case


@case("sessions.create", "7.11")
async def a_session_is_made_as_asked(scene: Scene) -> None:
    """`sessions.create` makes a session with the title and metadata; without an id the server gives one."""
    peer = await scene.open()
    given = await peer.call("sessions.create", title="t", metadata={"k": [1]})
    session = given["session"]
    expect(
        "the session", (session["title"], session["metadata"], session["message_count"]), ("t", {"k": [1]}, 0)
    )
    expect("as it is read", await peer.call("sessions.get", session_id=session["session_id"]), given)
    other = await peer.call("sessions.create")
    require(other["session"]["session_id"] != session["session_id"], "each has its own id", seen=other)


@case("sessions.create-key", "7.11", "G16")
async def a_key_makes_repeats_harmless(scene: Scene) -> None:
    """The same key and content gives the same session; with other content it is `idempotency_conflict`."""
    peer, other = await scene.open(), await scene.open()
    key = scene.new_id("key")
    ids = [(one, await one.begin("sessions.create", key=key, title="t")) for one in (peer, other, peer)]
    made = [(await one.answer(id))["session"]["session_id"] for one, id in ids]
    expect("the session of each", made, [made[0]] * 3)
    await peer.refused("idempotency_conflict", "sessions.create", {"key": key, "title": "other"})


@case("sessions.update", "7.11", "G19")
async def an_update_replaces_what_is_given(scene: Scene) -> None:
    """`sessions.update` replaces title and metadata whole; `null` removes the title; what is not given stays."""
    peer = await scene.open()
    session = await scene.session(peer, title="t", metadata={"a": 1})
    changed = (await peer.call("sessions.update", session_id=session, metadata={"b": 2}))["session"]
    expect("title and metadata", (changed["title"], changed["metadata"]), ("t", {"b": 2}))
    changed = (await peer.call("sessions.update", session_id=session, title=None))["session"]
    expect("title and metadata", (changed.get("title"), changed["metadata"]), (None, {"b": 2}))
    changed = (await peer.call("sessions.update", session_id=session, metadata={}))["session"]
    expect("metadata", changed.get("metadata", {}), {})


@case("sessions.archive", "10.2")
async def an_archived_session_takes_no_input(scene: Scene) -> None:
    """An archived session can be read and subscribed; prompts and modes are `refused` (`archived`); it can be taken back."""
    peer = await scene.open()
    session = await scene.session(peer)
    first = await peer.call("sessions.archive", session_id=session)
    require("archived_at" in first["session"], "it is archived", seen=first)
    again = await peer.call("sessions.archive", session_id=session)
    expect("a repeat", again["session"], first["session"])
    reader = await scene.follow(peer, session)
    prompt = {"session_id": session, "message_id": "m", "parts": [{"type": "text", "text": "x"}]}
    await peer.refused("refused", "prompt", prompt, reason="archived")
    await peer.refused(
        "refused",
        "sessions.approval_mode",
        {"session_id": session, "approval_mode": "always-allow"},
        reason="archived",
    )
    expect("what was published", reader.tags(), [])
    await peer.call("sessions.archive", session_id=session, archived=False)
    require("archived_at" not in reader.session, "it is taken back", seen=reader.session)
    expect("the same prompt", (await peer.call("prompt", **prompt))["state"], "started")


@case("sessions.while-a-turn-runs", "10.1", "G16", needs=["agent"])
async def a_running_turn_keeps_its_session(scene: Scene) -> None:
    """`sessions.clear` and `sessions.archive` are `refused` (`turn_running`) while a turn runs."""
    peer = await scene.open()
    session = await scene.session(peer)
    await scene.prompt(peer, session)
    for method in ("sessions.clear", "sessions.archive"):
        await peer.refused("refused", method, {"session_id": session}, reason="turn_running")


@case("sessions.clear", "10.1", "R11", needs=["agent"])
async def a_clear_drops_what_was_said(scene: Scene) -> None:
    """`sessions.clear` raises `first_sequence` above all messages, in one change; they can no longer be read."""
    peer = await scene.open()
    session = await scene.session(peer)
    for name in ("m1", "m2"):
        answer = await scene.prompt(peer, session, message_id=name)
        await peer.call("stop", session_id=session, turn_id=answer["turn_id"])
    reader = await scene.follow(peer, session)
    cleared = (await peer.call("sessions.clear", session_id=session))["session"]
    expect("the session", (cleared["first_sequence"], cleared["message_count"]), (3, 2))
    expect("the replica", (reader.messages, reader.tags()), (list[Map](), ["change"]))
    await peer.refused("not_found", "message", {"session_id": session, "message_id": "m1"}, kind="message")
    page = await peer.call("messages", session_id=session)
    expect("a page", (page["items"], page["has_more"], page["total"]), (list[Map](), False, 2))
    taken = {"session_id": session, "message_id": "m1", "parts": [{"type": "text", "text": "other"}]}
    await peer.refused("idempotency_conflict", "prompt", taken)


@case("sessions.fork", "10.4", "R18", needs=["agent"])
async def a_fork_is_a_copy(scene: Scene) -> None:
    """A fork has the messages up to the one named, with their sequences, new ids and an `origin`, and no turn or queue."""
    peer = await scene.open()
    session = await scene.session(peer, title="t", metadata={"k": 1})
    for name in ("m1", "m2", "m3"):
        answer = await scene.prompt(peer, session, f"text {name}", message_id=name)
        if name != "m3":
            await peer.call("stop", session_id=session, turn_id=answer["turn_id"])
    fork = (await peer.call("sessions.fork", session_id=session, message_id="m2", key=scene.new_id("k")))[
        "session"
    ]
    expect(
        "the copy",
        (fork["title"], fork["metadata"], fork["message_count"], fork.get("running_turn_id")),
        ("t", {"k": 1}, 2, None),
    )
    source, copy = await scene.copy(peer, session), await scene.copy(peer, fork["session_id"])
    expect(
        "texts and sequences",
        [(one["sequence"], one["parts"][0]["text"]) for one in copy],
        [(1, "text m1"), (2, "text m2")],
    )
    require(
        not {one["message_id"] for one in source} & {one["message_id"] for one in copy},
        "ids are new",
        seen=copy,
    )
    expect("origins", [one["origin"]["message_id"] for one in copy], ["m1", "m2"])
    require(all("turn_id" not in one for one in copy), "messages of a fork belong to no turn", seen=copy)
    reader = await scene.follow(peer, fork["session_id"])
    await peer.call("sessions.update", session_id=session, title="original")
    expect("the copy is its own", reader.session["title"], "t")
    await scene.same(reader, peer)


@case("sessions.fork-open", "10.4", needs=["agent"])
async def a_fork_closes_what_is_open(scene: Scene) -> None:
    """Parts that are open are closed in a fork (`forked`), and stay open in the original."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    await held.say("half")
    tool = await held.tool("ready")
    await held.ask(tool=tool)
    await held.stored()
    fork = (await peer.call("sessions.fork", session_id=session, new_session_id=scene.new_id()))["session"]
    parts = (await scene.copy(peer, fork["session_id"]))[-1]["parts"]
    seen = [
        (part.get("state", part.get("status")), part.get("error", part.get("cancel_reason")))
        for part in parts
    ]
    expect(
        "the parts of the fork",
        seen,
        [("done", None), ("failed", "forked"), ("cancelled", "runtime_interrupted")],
    )
    expect("the turn of the original", reader.turns[held.turn_id]["state"], "running")
    await held.say(" and on")
    await held.end()


@case("sessions.fork-key", "7.11")
async def a_fork_can_be_repeated(scene: Scene) -> None:
    """A fork repeated with its key gives the same session."""
    peer = await scene.open()
    session = await scene.session(peer)
    key = scene.new_id("key")
    made = [
        (await peer.call("sessions.fork", session_id=session, key=key))["session"]["session_id"]
        for _ in range(2)
    ]
    expect("the fork of each", made[1], made[0])


@case("sessions.delete", "10.3", "G17")
async def a_delete_ends_everything(scene: Scene) -> None:
    """`sessions.delete` stops the turn, and afterwards the session is `not_found`; a repeat says that it is done."""
    peer = await scene.open()
    session = await scene.session(peer)
    await scene.prompt(peer, session)
    reader = await scene.follow(peer, session)
    expect("the answer", await peer.call("sessions.delete", session_id=session), {})
    require(reader.closed is not None, "the subscription is closed before the answer", seen=reader.tags())
    await peer.refused("not_found", "sessions.delete", {"session_id": session}, kind="session", id=session)
    await peer.refused("already_exists", "sessions.create", {"session_id": session}, id=session)
    listed = [one["session_id"] for one in (await peer.call("sessions.list", limit=200))["items"]]
    require(session not in listed, "it is in no list", seen=session)


@case("sessions.times", "2.1", "G19")
async def times_are_the_servers(scene: Scene) -> None:
    """Times are milliseconds of the server's clock, and `created_at` never changes."""
    peer = await scene.open()
    session = await scene.session(peer)
    made = (await peer.call("sessions.get", session_id=session))["session"]
    changed = (await peer.call("sessions.update", session_id=session, title="t"))["session"]
    expect("created_at", changed["created_at"], made["created_at"])
    require(
        abs(made["created_at"] - peer.welcome["time"]) < 120_000,
        "the session was made now",
        expected=peer.welcome["time"],
        seen=made,
    )
    require(changed["updated_at"] >= made["updated_at"], "times do not go back", seen=(made, changed))
