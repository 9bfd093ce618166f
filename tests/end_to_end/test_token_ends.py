"""How a token ends, and that nothing of it stands in a log."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Literal

import pytest
import structlog

from midstream.server import logs
from midstream.server.connections import standing
from midstream.server.connections.auth import Tokens
from tests.end_to_end.guests import SECRET, guest, server_with_tokens, token

WORDS = "words-that-only-the-message-has"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database is."""
    return tmp_path / "midstream.db"


async def test_g33_a_connection_ends_when_the_grace_is_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then calls are answered, after the expiry too; then 4505."""
    monkeypatch.setattr(standing, "GRACE_SECONDS", 1.0)
    async with server_with_tokens(path) as server, guest(server.url, token("alice", ttl=1)) as alice:
        await alice.result("sessions.create")
        assert (await alice.closed())[0] == 4505


def test_the_grace_is_what_the_specification_says() -> None:
    """The tests above shorten it."""
    assert standing.GRACE_SECONDS == 25.0


@pytest.mark.parametrize("form", ["json", "console"])
async def test_the_log_has_no_token_no_secret_and_no_text(
    path: Path, form: Literal["json", "console"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At level debug: of a good token, bad ones, a URL, a prompt, and a failure with its traceback."""
    out = io.StringIO()
    before, level = logging.getLogger().handlers[:], logging.getLogger().level
    logs.configure(form, "debug", stream=out)
    good, bad = token("alice"), token("alice", secret="x" * 40)
    try:
        async with server_with_tokens(path) as server:
            async with guest(server.url, good) as alice:
                made = await alice.result("sessions.create", title=WORDS)
                session_id = made["session"]["session_id"]
                parts = [{"type": "text", "text": WORDS}]
                await alice.result("prompt", session_id=session_id, message_id="m", parts=parts)
                await alice.refusal("auth", token=bad)
            for given in (bad, good[:-3], token("bob", ttl=-1)):
                async with guest(server.url, hello=False) as other:
                    await other.send("hello", 1, given, {})
                    await other.closed()
            with pytest.raises(Exception, match="400"):
                async with guest(f"{server.url}/?token={good}", hello=False):
                    pass

            def fail(self: Tokens, given: str, wall_ms: int) -> None:
                secret_of_a_frame = given + SECRET
                raise RuntimeError(str(len(secret_of_a_frame)))

            monkeypatch.setattr(Tokens, "verify", fail)
            async with guest(server.url, hello=False) as other:
                await other.send("hello", 1, good, {})
                assert (await other.closed())[0] == 4003
    finally:
        logging.getLogger().handlers[:] = before
        logging.getLogger().setLevel(level)
        structlog.reset_defaults()
    written = out.getvalue()
    assert "token_refused" in written
    assert "RuntimeError" in written
    for secret in (good, bad, SECRET, WORDS, good.split(".")[1], good.split(".")[2]):
        assert secret not in written
