"""Who a connection is, what it may, and until when (SPEC 10.5, 10.6). Pure: it is told the time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import structlog
from msgspec import UNSET

from midstream.protocol.calls import AuthResult
from midstream.protocol.errors import Forbidden
from midstream.server.connections.auth import TokenRefused
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.effects import Close
from midstream.server.sessions.access import LOCAL, NOBODY, in_order
from midstream.server.sessions.commands import Caller

if TYPE_CHECKING:
    from msgspec import UnsetType

    from midstream.server.connections.auth import Authentication
    from midstream.server.sessions.access import Identity

GRACE_SECONDS: Final = 25.0
"""How long a connection may outlive its token: a refresh is tried again, and clocks differ."""

_log = structlog.stdlib.get_logger(__name__)


class Standing:
    """Who a connection is: nobody, until its token was found good."""

    __slots__ = ("_authentication", "_bearer", "caller", "over_at")

    def __init__(
        self, connection_id: str, authentication: Authentication | None, bearer: str | None = None
    ) -> None:
        """Wait for ``hello``; ``bearer`` is the handshake's token. Without authentication all are local."""
        self._authentication = authentication
        self._bearer = bearer
        self.caller = Caller(subject="", connection_id=connection_id, identity=NOBODY)
        self.over_at = math.inf
        """When the connection ends unless it gets another token, by the clock that never goes back."""

    def enter(self, token: str | None, *, now: float, wall_ms: int) -> Close | None:
        """Take the token of ``hello``; return how the connection ends where it is not accepted."""
        token, self._bearer = token or self._bearer, None
        if self._authentication is None:
            self._become(LOCAL, now, wall_ms)
            return None
        if token is None:
            reason = "this server needs a token, in hello or as Authorization: Bearer"
            return Close(CloseCode.UNAUTHORIZED, reason)
        try:
            identity = self._authentication.verify(token, wall_ms)
        except TokenRefused as error:
            _log.info("token_refused", why=str(error))
            if error.expired:
                return Close(CloseCode.TOKEN_EXPIRED, "the token has expired; come back with a new one")
            return Close(CloseCode.UNAUTHORIZED, "the token is not accepted")
        self._become(identity, now, wall_ms)
        return None

    def renew(self, token: str, *, now: float, wall_ms: int) -> AuthResult:
        """Take another token of the same subject.

        Raises:
            Forbidden: it is not accepted, or is another subject's; nothing was changed.

        """
        if self._authentication is not None:
            try:
                identity = self._authentication.verify(token, wall_ms)
            except TokenRefused as error:
                _log.info("token_refused", why=str(error))
                problem = "has expired. Get a new one" if error.expired else "is not accepted"
                raise Forbidden.because(
                    "token", f"{problem}; the connection goes on with the one that it has"
                ) from None
            if identity.subject != self.caller.subject:
                problem = "is another subject's. Open a connection of its own for it"
                raise Forbidden.because("token", problem)
            self._become(identity, now, wall_ms)
        return AuthResult(subject=self.caller.subject, scopes=self.scopes, token_ms=self.token_ms(wall_ms))

    @property
    def scopes(self) -> list[str]:
        """What it may, in the order of ``welcome``."""
        return in_order(self.caller.scopes)

    def token_ms(self, wall_ms: int) -> int | UnsetType:
        """Return in how many ms the token expires; UNSET where it never does."""
        expires_at = self.caller.identity.expires_at
        return UNSET if expires_at is None else max(0, expires_at - wall_ms)

    def _become(self, identity: Identity, now: float, wall_ms: int) -> None:
        self.caller = Caller(
            subject=identity.subject,
            connection_id=self.caller.connection_id,
            scopes=identity.scopes,
            identity=identity,
        )
        left = math.inf if identity.expires_at is None else (identity.expires_at - wall_ms) / 1000
        self.over_at = now + left + GRACE_SECONDS
