"""Who may open a WebSocket, and what plain HTTP requests get (SPEC 3.1).

There are no tokens yet, so the server listens on loopback only. That alone keeps other machines out,
but not a browser on this one: a page of any site may try to open a WebSocket to a loopback port.
Two checks stop that. The ``Origin`` that a browser sends must be a page of this machine, or one that
was configured; programs send none, and pass. And the ``Host`` must name loopback, or the host
of a configured origin, so that a stranger's name that was pointed at 127.0.0.1 (DNS rebinding)
does not pass as this machine. A page that another program serves on loopback may connect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from midstream.protocol.codec import CODECS
from midstream.server.config import is_loopback

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

HEALTH_PATH: Final = "/healthz"
_SHOWN: Final = 100
"""Characters of a stranger's header that an answer repeats."""


class Health(msgspec.Struct, frozen=True):
    """What ``GET /healthz`` says: 200 while ``ok``, 503 while ``draining``."""

    status: str
    connections: int


class Handshake:
    """Answers the HTTP request with which every connection begins; websockets' ``process_request``."""

    def __init__(self, allowed_origins: Sequence[str], health: Callable[[], Health]) -> None:
        """Let pages of these origins in, besides those of loopback."""
        self._origins = frozenset(origin.rstrip("/").lower() for origin in allowed_origins)
        self._hosts = frozenset(urlsplit(origin).hostname for origin in self._origins)
        self._health = health

    def __call__(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return the answer to a request that opens no WebSocket, or None to go on opening one."""
        path = request.path.partition("?")[0]
        upgrade = any("websocket" in value.lower() for value in request.headers.get_all("Upgrade"))
        if path == HEALTH_PATH and not upgrade:
            response = self._healthz(connection, request)
        else:
            refusal = self._refusal(request, upgrade=upgrade)
            if refusal is None:
                return None
            response = connection.respond(*refusal)
        if request.method == "HEAD":
            response.body = b""
        return response

    def _healthz(self, connection: ServerConnection, request: Request) -> Response:
        if request.method not in {"GET", "HEAD"}:
            response = connection.respond(
                HTTPStatus.METHOD_NOT_ALLOWED, f"{HEALTH_PATH} answers GET and HEAD.\n"
            )
            response.headers["Allow"] = "GET, HEAD"
            return response
        health = self._health()
        status = HTTPStatus.OK if health.status == "ok" else HTTPStatus.SERVICE_UNAVAILABLE
        response = connection.respond(status, msgspec.json.encode(health).decode() + "\n")
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "application/json"
        response.headers["Cache-Control"] = "no-store"
        return response

    def _refusal(self, request: Request, *, upgrade: bool) -> tuple[HTTPStatus, str] | None:
        hosts = request.headers.get_all("Host")
        if len(hosts) != 1 or not self._is_here(hosts[0]):
            return HTTPStatus.MISDIRECTED_REQUEST, (
                f"The Host header is {_shown(hosts)}, which does not name this machine. Connect to "
                "ws://127.0.0.1 or ws://localhost and the port; a proxy in between must set Host so.\n"
            )
        if not upgrade:
            return HTTPStatus.NOT_FOUND, (
                "This is a midstream server. It speaks WebSocket with the subprotocol "
                f"{' or '.join(CODECS)}, and answers GET {HEALTH_PATH}. There is nothing else here.\n"
            )
        origins = request.headers.get_all("Origin")
        if len(origins) > 1 or not all(map(self._may_come_from, origins)):
            return HTTPStatus.FORBIDDEN, (
                f"A page of {_shown(origins)} may not connect. If it is yours, add its origin to "
                "MIDSTREAM_ALLOWED_ORIGINS (the setting allowed_origins) of the server.\n"
            )
        offered = {
            name.strip()
            for value in request.headers.get_all("Sec-WebSocket-Protocol")
            for name in value.split(",")
        }
        if offered.isdisjoint(CODECS):
            return HTTPStatus.BAD_REQUEST, (
                f"Offer a WebSocket subprotocol: {' or '.join(CODECS)}. The request offers "
                f"{_shown(sorted(offered))}.\n"
            )
        return None

    def _is_here(self, host: str) -> bool:
        name = _hostname(f"//{host}")
        return name is not None and (is_loopback(name) or name in self._hosts)

    def _may_come_from(self, origin: str) -> bool:
        if origin.rstrip("/").lower() in self._origins:
            return True
        name = _hostname(origin)
        return name is not None and origin.lower().startswith(("http://", "https://")) and is_loopback(name)


def _hostname(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it is no number
    except ValueError:
        return None
    # "http://127.0.0.1@evil.example" has a host of its own, but no browser sends user names here
    return None if "@" in parts.netloc else parts.hostname


def _shown(values: Sequence[str]) -> str:
    text = ", ".join(values)
    return repr(text[:_SHOWN]) if text else "missing"
