"""Tokens for development and tests; an application mints its own, wherever its users log in (SPEC 10.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.server.config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence


def mint(
    secret: str,
    *,
    subject: str,
    expires_at: int,
    scopes: Sequence[str] | None = None,
    sessions: Sequence[str] | None = None,
) -> str:
    """Return a token, signed by HS256 with the secret; ``expires_at`` is in seconds since the epoch.

    Raises:
        ConfigError: the secret is too short, or the extra ``tokens`` is missing.

    """
    try:
        from joserfc import jwt  # noqa: PLC0415 - comes with the extra `tokens`

        from midstream.server.connections.keys import Secret  # noqa: PLC0415 - likewise
    except ModuleNotFoundError:
        raise ConfigError(
            "token_secret",
            "needs joserfc, which is not installed. Install midstream with the extra `tokens`: "
            "pip install 'midstream[tokens]'",
        ) from None
    claims: dict[str, object] = {"sub": subject, "exp": expires_at}
    if scopes is not None:
        claims["scopes"] = list(scopes)
    if sessions is not None:
        claims["sessions"] = list(sessions)
    (key,) = Secret(secret).current(0)
    return jwt.encode({"alg": "HS256", "typ": "JWT"}, claims, key.key)
