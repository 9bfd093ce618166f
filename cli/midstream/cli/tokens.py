"""Tokens on the command line: where they come from, and how one is made for development.

Neither a token nor a secret is an option: what stands in a command line, every user of the machine can read.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Final

from midstream.cli.failure import MISUSED, CommandFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOKEN_VARIABLE: Final = "MIDSTREAM_TOKEN"  # noqa: S105 - a name
SECRET_VARIABLE: Final = "MIDSTREAM_TOKEN_SECRET"  # noqa: S105 - likewise
_TTL: Final = re.compile(r"(\d+)([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def token_from(file: Path | None) -> str | Callable[[], str] | None:
    """Return the token of a file, which is read anew whenever one is needed, or that of MIDSTREAM_TOKEN.

    Raises:
        CommandFailed: the file cannot be read, or is empty.

    """
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    _text(file, "token")
    return lambda: _text(file, "token")


def secret_from(file: Path | None) -> str | None:
    """Return the secret of a file, without the white space around it; None without a file.

    Raises:
        CommandFailed: the file cannot be read, or is empty.

    """
    return None if file is None else _text(file, "secret")


def mint_token(
    *, subject: str, scopes: str | None, sessions: str | None, ttl: str, secret_file: Path | None
) -> str:
    """Return a token for development, by the secret of a file or of MIDSTREAM_TOKEN_SECRET.

    Raises:
        CommandFailed: there is no secret, or something else is wrong.

    """
    from midstream.server.config import ConfigError  # noqa: PLC0415 - a chat needs no server
    from midstream.server.connections.minting import mint  # noqa: PLC0415 - likewise

    secret = secret_from(secret_file) or os.environ.get(SECRET_VARIABLE)
    if not secret:
        text = (
            f"There is no secret. Set {SECRET_VARIABLE}, or give --token-secret-file, as for midstream serve."
        )
        raise CommandFailed(text, code=MISUSED)
    found = _TTL.fullmatch(ttl)
    if found is None:
        raise CommandFailed(f"--ttl is {ttl!r}. Expected a number and s, m, h or d, like 1h.", code=MISUSED)
    expires_at = int(time.time()) + int(found[1]) * _SECONDS[found[2]]
    try:
        return mint(
            secret, subject=subject, expires_at=expires_at, scopes=_list(scopes), sessions=_list(sessions)
        )
    except ConfigError as error:
        raise CommandFailed(str(error), code=MISUSED) from error


def _list(text: str | None) -> list[str] | None:
    return None if text is None else [one.strip() for one in text.split(",") if one.strip()]


def _text(file: Path, what: str) -> str:
    try:
        text = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise CommandFailed(f"Cannot read the {what} from {file}: {reason}.", code=MISUSED) from error
    if not text:
        raise CommandFailed(f"There is no {what} in {file}: it is empty.", code=MISUSED)
    return text
