"""Tokens on the command line: made, taken from where others cannot read them, and refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from midstream.cli import tokens
from midstream.cli.commands import app
from midstream.cli.failure import CommandFailed
from midstream.server.clock import SystemClock
from midstream.server.connections.auth import Tokens
from midstream.server.connections.keys import Secret

SECRET = "0123456789abcdef0123456789abcdef-of-tests"  # noqa: S105 - of tests
RUN = CliRunner()


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (tokens.TOKEN_VARIABLE, tokens.SECRET_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("way", ["variable", "file"])
def test_a_token_is_minted_that_the_server_takes(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the secret of the variable, or of a file, whose line may end."""
    more: list[str] = []
    if way == "variable":
        monkeypatch.setenv(tokens.SECRET_VARIABLE, SECRET)
    else:
        (tmp_path / "secret").write_text(f"{SECRET}\n", "utf-8")
        more = ["--token-secret-file", str(tmp_path / "secret")]
    asked = ["token", "--sub", "alice", "--scopes", "read, agent", "--sessions", "team-*,a", "--ttl", "2h"]
    minted = RUN.invoke(app, [*asked, *more])
    assert minted.exit_code == 0
    now = SystemClock().wall_ms()
    identity = Tokens([Secret(SECRET)]).verify(minted.stdout.strip(), now)
    assert (identity.subject, identity.sessions) == ("alice", ("team-*", "a"))
    assert identity.scopes == {"read", "agent", "internal"}
    assert identity.expires_at is not None
    assert 7_190_000 < identity.expires_at - now <= 7_200_000


@pytest.mark.parametrize(
    ("secret", "more", "problem"),
    [
        (None, [], "MIDSTREAM_TOKEN_SECRET"),
        ("short", [], "at least 32"),
        (SECRET, ["--ttl", "1y"], "like 1h"),
        (SECRET, ["--token-secret-file", "is-not-there"], "is-not-there"),
    ],
)
def test_what_cannot_be_minted_is_said_in_one_line(
    secret: str | None, more: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to do; the secret is not in it."""
    if secret is not None:
        monkeypatch.setenv(tokens.SECRET_VARIABLE, secret)
    minted = RUN.invoke(app, ["token", "--sub", "alice", *more])
    assert minted.exit_code == 2
    assert problem in minted.stderr
    assert SECRET not in minted.stderr


def test_a_token_comes_from_a_file_that_is_read_anew_or_from_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So who replaces the file renews the token."""
    assert tokens.token_from(None) is None
    monkeypatch.setenv(tokens.TOKEN_VARIABLE, "of the variable")
    assert tokens.token_from(None) == "of the variable"
    file = tmp_path / "token"
    file.write_text("one\n", "utf-8")
    given = tokens.token_from(file)
    assert callable(given)
    assert given() == "one"
    file.write_text("two\n", "utf-8")
    assert given() == "two"
    file.write_text("\n", "utf-8")
    with pytest.raises(CommandFailed, match="empty"):
        tokens.token_from(file)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "--anyone-may-connect"),
        (["--anyone-may-connect"], "--tls-ends-at-a-proxy"),
        (["--cert", "cert.pem"], "tls_key"),
    ],
)
def test_serve_listens_to_others_only_where_words_say_so(options: list[str], problem: str) -> None:
    """The error names the flag."""
    served = RUN.invoke(app, ["serve", "--host", "192.0.2.1", "--no-page", *options])
    assert served.exit_code == 2
    assert problem in served.stderr
