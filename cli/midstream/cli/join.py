"""Joins a session of a server, or says in one line why that does not work."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from midstream.cli.failure import MISUSED, CommandFailed
from midstream.client.client import Client
from midstream.client.errors import MidstreamError, NotFound, TimedOut

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from midstream.client.credentials import Token
    from midstream.client.session import Session

PATIENCE_S = 10.0
"""Seconds after which a server that does not answer is taken for missing."""


@asynccontextmanager
async def joined(
    url: str,
    session_id: str,
    *,
    create: bool,
    include_internal: bool = False,
    token: Token | None = None,
) -> AsyncGenerator[Session]:
    """Give a session that is subscribed and synced, and leave it at the end.

    Raises:
        CommandFailed: the URL is wrong, no server answers, or there is no such session. Also where the
            block raises an error of the protocol: the server closed the session, say.

    """
    try:
        client = Client(url, token)
    except ValueError as error:
        raise CommandFailed(f"{error}.", code=MISUSED) from error
    async with client:
        try:
            yield await client.session(
                session_id, create=create, include_internal=include_internal, timeout=PATIENCE_S
            )
        except TimedOut as error:
            # the problem names the address already
            why = client.problem or f"no server answers at {url}"
            raise CommandFailed(
                f"{why[:1].upper()}{why[1:]}. Check the address, or start a server: `midstream serve`."
            ) from error
        except NotFound as error:
            raise CommandFailed(str(error), code=MISUSED) from error
        except MidstreamError as error:
            raise CommandFailed(str(error)) from error
