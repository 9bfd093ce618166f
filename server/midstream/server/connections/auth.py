"""Who somebody is, by the token that was given (SPEC 10.6).

A host that has tokens of another kind gives the server an :class:`Authentication` of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol, cast

import msgspec

from midstream.protocol.limits import DEFAULT_LIMITS
from midstream.server.config import ConfigError
from midstream.server.sessions.access import Identity, scopes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from midstream.server.config import Config
    from midstream.server.connections.keys import KeyFile, Secret

MOST_TOKEN_BYTES: Final = DEFAULT_LIMITS.hello_bytes
MOST_SUBJECT_BYTES: Final = 128
_DEFAULT_SCOPES: Final = frozenset({"read", "write"})
_LATEST_SECONDS: Final = 2**53 // 1000
"""The latest expiry that a time in ms can say; a later one is taken for it."""


class TokenRefused(Exception):
    """A token is not accepted. The text is for the log: whoever gave it is told no more than that."""

    def __init__(self, why: str, *, expired: bool = False) -> None:
        """Say why; ``expired`` where a new token would do. ``why`` has nothing of the token."""
        super().__init__(why)
        self.expired = expired


class Authentication(Protocol):
    """Finds out who somebody is. It is asked in the event loop's thread, and must answer at once."""

    def verify(self, token: str, wall_ms: int) -> Identity:
        """Return who has this token, at this time (ms since the epoch).

        Raises:
            TokenRefused: it is not accepted.

        """
        ...


class Tokens:
    """JSON Web Tokens, verified by joserfc: about 50 µs each with a secret."""

    def __init__(
        self, keys: Sequence[Secret | KeyFile], *, issuer: str | None = None, audience: str | None = None
    ) -> None:
        """Accept what is signed by one of these; ``iss`` and ``aud`` are compared where they are given."""
        from joserfc import jws  # noqa: PLC0415 - comes with the extra `tokens`
        from joserfc.errors import JoseError  # noqa: PLC0415 - likewise

        from midstream.server.connections.keys import OnlyThese  # noqa: PLC0415 - likewise

        self._jws, self._error, self._registry = jws, JoseError, OnlyThese
        self._keys = keys
        self._issuer = issuer
        self._audience = audience

    def verify(self, token: str, wall_ms: int) -> Identity:
        """Return who has this token.

        Raises:
            TokenRefused: it is not accepted.

        """
        if len(token.encode("utf-8", "replace")) > MOST_TOKEN_BYTES or not token.isascii():
            raise TokenRefused("it is too long, or is no token")
        return self._identity(self._claims(token, wall_ms), wall_ms)

    def _claims(self, token: str, wall_ms: int) -> dict[str, object]:
        """Return what a token says, once its signature is found good."""
        try:
            header = self._jws.extract_compact(token.encode()).headers()
        except (self._error, ValueError, TypeError, KeyError, RecursionError):
            raise TokenRefused("it has not the form of a JWT") from None
        algorithm, kid = header.get("alg"), header.get("kid")
        candidates = [
            one
            for source in self._keys
            for one in source.current(wall_ms)
            if algorithm in one.algorithms and (kid is None or one.kid is None or one.kid == kid)
        ]
        for one in candidates:
            try:
                signed = self._jws.deserialize_compact(
                    token, one.key, registry=self._registry(one.algorithms)
                )
                return msgspec.json.decode(signed.payload, type=dict[str, object])
            except (self._error, msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError):
                continue  # the next key, if any
        raise TokenRefused("no key of the server fits" if not candidates else "its signature is not good")

    def _identity(self, claims: dict[str, object], wall_ms: int) -> Identity:
        subject = claims.get("sub")
        if (
            not isinstance(subject, str)
            or not 1 <= len(subject.encode("utf-8", "replace")) <= MOST_SUBJECT_BYTES
        ):
            raise TokenRefused(f"its sub is no string of 1 to {MOST_SUBJECT_BYTES} bytes")
        if self._issuer is not None and claims.get("iss") != self._issuer:
            raise TokenRefused("its iss is not the one that is expected")
        audience = claims.get("aud")
        if self._audience is not None and self._audience not in _list(audience):
            raise TokenRefused("its aud is not the one that is expected")
        expires = _time(claims, "exp")
        if expires is None:
            raise TokenRefused("it has no exp")
        begins = _time(claims, "nbf")
        if begins is not None and wall_ms < begins * 1000:
            raise TokenRefused("its nbf is in the future")
        if wall_ms >= expires * 1000:
            raise TokenRefused("it has expired", expired=True)
        return Identity(
            subject=subject,
            scopes=scopes_of(_scopes(claims)),
            sessions=_sessions(claims),
            expires_at=math.floor(min(expires, _LATEST_SECONDS) * 1000),
        )


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _time(claims: dict[str, object], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TokenRefused(f"its {name} is no time")
    return value


def _scopes(claims: dict[str, object]) -> frozenset[str]:
    value = claims.get("scopes")
    if value is None:
        return _DEFAULT_SCOPES
    if isinstance(value, str):
        return frozenset(value.split())
    return frozenset(_strings(value, "scopes"))


def _sessions(claims: dict[str, object]) -> tuple[str, ...] | None:
    value = claims.get("sessions")
    return None if value is None else _strings(value, "sessions")


def _strings(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in cast("list[object]", value)):
        raise TokenRefused(f"its {name} are no list of strings")
    return tuple(cast("list[str]", value))


def authentication_of(config: Config) -> Authentication | None:
    """Return how the settings say that tokens are verified; None where there are none.

    Raises:
        ConfigError: a key cannot be used, or the extra ``tokens`` is missing.

    """
    if not config.has_tokens:
        return None
    try:
        from midstream.server.connections.keys import KeyFile, Secret  # noqa: PLC0415 - the extra `tokens`
    except ModuleNotFoundError:
        raise ConfigError(
            "token_secret" if config.token_secret else "token_keys",
            "needs joserfc, which is not installed. Install midstream with the extra `tokens`: "
            "pip install 'midstream[tokens]'",
        ) from None
    keys: list[Secret | KeyFile] = []
    if config.token_secret:
        keys.append(Secret(config.token_secret))
    if config.token_keys:
        keys.append(KeyFile(config.token_keys))
    return Tokens(keys, issuer=config.token_issuer or None, audience=config.token_audience or None)
