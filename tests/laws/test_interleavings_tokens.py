"""The races of tokens (SPEC 12), on a real socket: guards and lists read the store beside the session."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.server.connections import standing
from tests.end_to_end.guests import guest, server_with_tokens, token

PARTS = [{"type": "text", "text": "Hi"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database is."""
    return tmp_path / "midstream.db"


@pytest.mark.parametrize("known", [False, True], ids=["owner unknown", "owner known"])
async def test_r59_a_right_is_lost_while_a_subscribe_is_under_way(path: Path, *, known: bool) -> None:
    """The subscription is answered, and ends behind that."""
    async with (
        server_with_tokens(path) as server,
        guest(server.url, token("alice", sessions=["b"])) as alice,
    ):
        await alice.result("sessions.create", session_id="b")
    async with (
        server_with_tokens(path) as server,
        guest(server.url, token("alice", sessions=["b"])) as alice,
        guest(server.url, token("root", scopes=["admin"])) as root,
    ):
        if known:
            await root.result("sessions.get", session_id="b")
        await alice.send("call", 1, "subscribe", {"session_id": "b"})
        await alice.send("call", 2, "auth", {"token": token("alice", sessions=["a"])})
        frames = [await alice.receive() for _ in range(3)]
        (answer,) = [frame for frame in frames if frame[:2] == ["result", 1]]
        (end,) = [frame for frame in frames if frame[0] == "closed"]
        assert end == ["closed", answer[2]["channel"], "forbidden", False]
        assert frames.index(answer) < frames.index(end)
        await root.result("prompt", session_id="b", message_id="m", parts=PARTS)
        await alice.send("ping", 7)
        assert (await alice.receive())[:2] == ["pong", 7]


async def test_r60_a_new_token_in_the_grace_keeps_the_connection(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end is that of the new one."""
    monkeypatch.setattr(standing, "GRACE_SECONDS", 60.0)
    async with server_with_tokens(path) as server, guest(server.url, token("alice", ttl=1)) as alice:
        await alice.result("auth", token=token("alice", ttl=100))
        assert (await alice.result("sessions.list"))["items"] == []
