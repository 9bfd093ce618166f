"""A server that speaks TLS by itself, with a certificate that the test makes."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidMessage

from midstream.client import Client, Options
from midstream.server import ConfigError, Server
from midstream.server.config import BindRefused
from tests.certificates import write_certificate
from tests.end_to_end.guests import SECRET, guest, say_hello_back, server_with_tokens, token
from tests.end_to_end.stage import QUICK


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database is."""
    return tmp_path / "midstream.db"


async def test_a_turn_is_streamed_over_tls(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a client that trusts the certificate; who speaks without TLS gets nothing."""
    cert, key = write_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", cert)
    async with server_with_tokens(path, tls_cert=cert, tls_key=key) as server:
        assert server.url.startswith("wss://")
        assert server.page_url.startswith("https://")
        async with Client(server.url, token("alice"), options=Options(policy=QUICK)) as client:
            session = await client.session((await client.create()).session_id)
            turn = await (await session.prompt("Hi")).finished()
            assert turn.state == "completed"
            assert "Hello" in str(session.messages[-1].parts)
        with pytest.raises((InvalidMessage, OSError, EOFError)):
            async with guest(server.url.replace("wss", "ws"), token("alice")):
                pass


async def test_who_does_not_trust_the_certificate_does_not_connect(path: Path, tmp_path: Path) -> None:
    """The token is not sent to a stranger."""
    cert, key = write_certificate(tmp_path)
    async with server_with_tokens(path, tls_cert=cert, tls_key=key) as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            async with guest(server.url, token("alice")):
                pass


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({}, "anyone_may_connect"),
        ({"anyone_may_connect": True}, "tls_ends_at_a_proxy"),
        ({"token_secret": SECRET}, "tls_ends_at_a_proxy"),
        ({"tls_ends_at_a_proxy": True}, "anyone_may_connect"),
    ],
)
async def test_other_addresses_need_tokens_and_tls_or_words(
    path: Path, settings: dict[str, Any], missing: str
) -> None:
    """The error names the flag that says so; nothing was opened."""
    with pytest.raises(BindRefused, match=missing):
        async with Server(say_hello_back, path, **settings).listen("0.0.0.0", 0):  # noqa: S104 - is refused
            pass
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"token_secret": SECRET, "tls_ends_at_a_proxy": True},
        {"anyone_may_connect": True, "tls_ends_at_a_proxy": True},
    ],
)
def test_with_the_words_they_may(settings: dict[str, Any]) -> None:
    """And with a certificate, of course."""
    Server(say_hello_back, "unused.db", **settings).config.check_host("192.0.2.1")


async def test_a_certificate_that_cannot_be_used_is_named(path: Path, tmp_path: Path) -> None:
    """With what was expected."""
    cert, key = write_certificate(tmp_path)
    for cert_path, key_path, setting in (
        (cert, str(tmp_path / "none.pem"), "tls_key"),
        (key, key, "tls_cert"),
    ):
        server = Server(say_hello_back, path, tls_cert=cert_path, tls_key=key_path)
        with pytest.raises(ConfigError) as caught:
            async with server.listen("127.0.0.1", 0):
                pass
        assert caught.value.setting == setting
    with pytest.raises(ConfigError, match="tls_key"):
        Server(say_hello_back, path, tls_cert=cert)
