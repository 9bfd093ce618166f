"""Tokens, with real sockets: who gets in, what they see, and how it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from midstream.protocol.calls import PARAMS
from midstream.server import Config
from midstream.server.connections.calls import ROUTES
from tests.end_to_end.guests import Guest, guest, server_with_tokens, token

PARTS = [{"type": "text", "text": "Hi"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database is."""
    return tmp_path / "midstream.db"


async def test_who_has_a_token_is_told_who_they_are_and_until_when(path: Path) -> None:
    """In welcome, and in the answer of auth."""
    async with server_with_tokens(path) as server, guest(server.url, hello=False) as alice:
        (_, info) = await alice.hello(token("alice", ttl=100, scopes=["read", "agent", "strange"]))
        assert (info["subject"], info["scopes"]) == ("alice", ["read", "internal", "agent"])
        assert 95_000 < info["token_ms"] <= 100_000
        renewed = await alice.result("auth", token=token("alice", ttl=1_000, scopes=["read", "write"]))
        assert renewed["scopes"] == ["read", "write"]
        assert 995_000 < renewed["token_ms"] <= 1_000_000


async def test_a_header_will_do_and_that_of_hello_counts_more(path: Path) -> None:
    """For programs that can set one."""
    async with server_with_tokens(path) as server:
        headers = {"Authorization": f"Bearer {token('alice')}"}
        for given, subject in ((None, "alice"), (token("bob"), "bob")):
            async with guest(server.url, hello=False, additional_headers=headers) as somebody:
                (_, info) = await somebody.hello(given)
                assert info["subject"] == subject


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (None, 4504),
        ("nonsense", 4504),
        (token("alice", secret="f" * 40), 4504),
        (token("alice", ttl=-1), 4505),
    ],
    ids=["none", "no token", "another secret", "expired"],
)
async def test_who_has_none_is_not_let_in(path: Path, given: str | None, code: int) -> None:
    """And what is wrong with it is not said."""
    async with server_with_tokens(path) as server, guest(server.url, hello=False) as somebody:
        await somebody.send("hello", 1, given, {})
        closed, reason = await somebody.closed()
        assert closed == code
        assert "token" in str(reason)


@pytest.mark.parametrize("name", ["token", "access_token", "JWT"])
async def test_a_token_in_a_url_is_refused(path: Path, name: str) -> None:
    """It stands in somebody's log by now; the answer says where it goes."""
    async with server_with_tokens(path) as server:
        with pytest.raises(InvalidStatus) as caught:
            async with guest(f"{server.url}/?a=1&{name}={token('alice')}"):
                pass
        assert caught.value.response.status_code == 400
        assert b"in hello" in (caught.value.response.body or b"")
        assert token("alice").encode()[:20] not in (caught.value.response.body or b"")


async def test_a_session_belongs_to_who_made_it_and_to_whom_a_token_names_it(path: Path) -> None:
    """Rooms are shared by the `sessions` of tokens; an admin sees all."""
    async with (
        server_with_tokens(path) as server,
        guest(server.url, token("alice")) as alice,
        guest(server.url, token("bob", sessions=["team-*"])) as bob,
        guest(server.url, token("carol", sessions=["team-1"])) as carol,
        guest(server.url, token("root", scopes=["admin"])) as root,
    ):
        own = (await alice.result("sessions.create"))["session"]["session_id"]
        await bob.result("sessions.create", session_id="team-1")
        await bob.result("sessions.create", session_id="team-2")

        async def listed(who: Guest) -> set[str]:
            return {one["session_id"] for one in (await who.result("sessions.list"))["items"]}

        assert await listed(alice) == {own}
        assert await listed(bob) == {"team-1", "team-2"}
        assert await listed(carol) == {"team-1"}
        assert await listed(root) == {own, "team-1", "team-2"}
        await carol.result("prompt", session_id="team-1", message_id="m", parts=PARTS)


def calls_on(session_id: str) -> dict[str, dict[str, object]]:
    """A well-formed call of each method that names a session."""
    more: dict[str, dict[str, object]] = {
        "message": {"message_id": "m"},
        "turn": {"turn_id": "t"},
        "prompt": {"message_id": "m", "parts": PARTS},
        "respond": {"interaction_id": "i", "response": {"kind": "approval", "decision": "approved"}},
        "cancel_input": {"message_id": "m"},
        "compact": {"through_sequence": 1, "summary": "It was said."},
        "verify": {"from_sequence": 1, "to_sequence": 2},
        "signal": {"name": "typing"},
        "sessions.update": {"title": "Mine"},
        "sessions.approval_mode": {"approval_mode": "always-allow"},
        "agent.attach": {"turn_id": "t"},
        "agent.decline": {"turn_id": "t"},
    }
    naming = [method for method, kind in PARAMS.items() if "session_id" in kind.__struct_fields__]
    return {
        method: {"session_id": session_id, **more.get(method, {})}
        for method in naming
        if method != "sessions.create"
    }


def test_every_method_says_what_it_does_with_a_session() -> None:
    """One that is new is refused until its route says it."""
    assert set(ROUTES) == set(PARAMS)
    for method, route in ROUTES.items():
        assert (route.action is None) == (route.to != "session"), method


@pytest.mark.parametrize("agent", ["own", "remote"])
async def test_g21_another_ones_session_is_answered_as_one_that_never_was(path: Path, agent: str) -> None:
    """Every method, the whole error: code, text, details; before and after its owner was looked up."""
    settings: dict[str, Any] = {}
    if agent == "remote":
        settings |= {"agent": None, "config": Config(agent="remote")}
    scopes = ["read", "write", "internal", "agent"]
    async with (
        server_with_tokens(path, **settings) as server,
        guest(server.url, token("alice")) as alice,
        guest(server.url, token("mallory", scopes=scopes, sessions=["mine-*"])) as mallory,
    ):
        secret = (await alice.result("sessions.create", title="secret"))["session"]["session_id"]
        unknown = "x" * len(secret)
        if agent == "remote":
            await mallory.result("agent.register", name="w", instance="i")
        for method in calls_on(secret):
            answers: list[object] = []
            for session_id in (secret, unknown, secret):
                frame = await mallory.ask(method, **calls_on(session_id)[method])
                answers.append(str(frame[2]).replace(session_id, "ID"))
            assert answers[0] == answers[1] == answers[2], method
        assert await alice.result("sessions.get", session_id=secret)


async def test_an_id_that_is_not_covered_cannot_be_chosen_whether_it_is_taken_or_not(path: Path) -> None:
    """Else a free id could be told from a taken one."""
    async with (
        server_with_tokens(path) as server,
        guest(server.url, token("alice", sessions=["a*"])) as alice,
        guest(server.url, token("mallory")) as mallory,
        guest(server.url, token("bob", sessions=["b"])) as bob,
    ):
        await alice.result("sessions.create", session_id="a")
        own = (await mallory.result("sessions.create"))["session"]["session_id"]
        makers: list[Callable[[str], Awaitable[object]]] = [
            lambda one: mallory.refusal("sessions.create", session_id=one),
            lambda one: bob.refusal("sessions.create", session_id=one),
            lambda one: mallory.refusal("sessions.fork", session_id=own, new_session_id=one),
        ]
        for make in makers:
            taken, free = str(await make("a")), str(await make("f"))
            assert taken == free
            assert "forbidden" in taken
        assert (await bob.refusal("sessions.create"))["code"] == "forbidden"


async def test_g34_a_key_is_its_subjects(path: Path) -> None:
    """By another's key nobody is given a session, or told that there is one."""
    async with (
        server_with_tokens(path) as server,
        guest(server.url, token("alice")) as alice,
        guest(server.url, token("mallory")) as mallory,
    ):
        hers = await alice.result("sessions.create", key="k", title="secret")
        again = await alice.result("sessions.create", key="k", title="secret")
        other = await mallory.result("sessions.create", key="k", title="secret")
        assert again["session"] == hers["session"]
        assert other["session"]["session_id"] != hers["session"]["session_id"]
        assert (await mallory.result("sessions.create", key="k2", title="other"))["session"][
            "title"
        ] == "other"


async def test_a_watch_tells_of_nothing_that_its_owner_may_not_see(path: Path) -> None:
    """Neither that it is there, nor that it is gone."""
    async with (
        server_with_tokens(path, watch_ms=1) as server,
        guest(server.url, token("alice")) as alice,
        guest(server.url, token("mallory")) as mallory,
    ):
        assert (await mallory.result("sessions.watch"))["items"] == []
        secret = (await alice.result("sessions.create", title="secret"))["session"]["session_id"]
        await alice.result("sessions.update", session_id=secret, title="still")
        await alice.result("sessions.delete", session_id=secret)
        own = (await mallory.result("sessions.create"))["session"]["session_id"]
        while not mallory.seen:
            mallory.seen.append(await mallory.receive())
        told = {one["session_id"] for frame in mallory.seen for one in frame[1].get("changed", [])}
        assert told == {own}
        assert not any(frame[1].get("removed") for frame in mallory.seen)


async def test_g32_what_a_new_token_does_not_allow_ends(path: Path) -> None:
    """Subscriptions are closed, the internal view too, a watch asks anew, and nothing follows."""
    claims: dict[str, Any] = {"scopes": ["read", "write", "internal"], "sessions": ["a", "b"]}
    async with (
        server_with_tokens(path, watch_ms=1) as server,
        guest(server.url, token("alice", **claims)) as alice,
        guest(server.url, token("root", scopes=["admin"])) as root,
    ):
        for one in ("a", "b"):
            await alice.result("sessions.create", session_id=one)
        channels = {
            one: (await alice.result("subscribe", session_id=one, include_internal=one == "a"))["channel"]
            for one in ("a", "b")
        }
        await alice.result("sessions.watch")
        await alice.result("auth", token=token("alice", scopes=["read", "write"], sessions=["a", "c"]))
        # the internal view of `a` needs a scope that is gone, and `b` is not covered any more
        while sum(frame[0] == "closed" for frame in alice.seen) < 2 or not any(
            frame[0] == "sessions" for frame in alice.seen
        ):
            alice.seen.append(await alice.receive())
        closed = [frame for frame in alice.seen if frame[0] == "closed"]
        assert sorted(closed) == sorted(
            ["closed", channel, "forbidden", False] for channel in channels.values()
        )
        assert [frame[1] for frame in alice.seen if frame[0] == "sessions"] == [{"incomplete": True}]
        alice.seen.clear()
        assert (await alice.refusal("sessions.get", session_id="b"))["code"] == "not_found"
        assert {one["session_id"] for one in (await alice.result("sessions.watch"))["items"]} == {"a"}
        await root.result("prompt", session_id="b", message_id="m", parts=PARTS)
        await root.result("sessions.update", session_id="b", title="News")
        await root.result("sessions.update", session_id="a", title="News")
        while not alice.seen:
            alice.seen.append(await alice.receive())
        assert {one["session_id"] for frame in alice.seen for one in frame[1].get("changed", [])} == {"a"}


async def test_another_subjects_token_and_a_bad_one_change_nothing(path: Path) -> None:
    """The connection goes on with the token that it has."""
    async with server_with_tokens(path) as server, guest(server.url, token("alice")) as alice:
        for given in (token("bob"), "nonsense", token("alice", ttl=-1)):
            error = await alice.refusal("auth", token=given)
            assert (error["code"], error["details"]) == ("forbidden", {"field": "token"})
        await alice.result("sessions.create")


async def test_without_tokens_auth_says_local(path: Path) -> None:
    """So a client that has a token need not know whether it is asked for."""
    async with server_with_tokens(path, token_secret="") as server, guest(server.url, "whatever") as somebody:
        answer = await somebody.result("auth", token="whatever")  # noqa: S106 - it is none
        assert answer == {"subject": "local", "scopes": ["read", "write", "internal", "agent", "admin"]}
