"""Who may open a WebSocket, and who answers plain HTTP requests (SPEC 3.1).

A page of any site may try to open a WebSocket to any address, a loopback port too. Two checks stop that.
The ``Origin`` that a browser sends must be a page of this machine, of the server itself, or one that was
configured; programs send none, and pass. And without tokens the ``Host`` must be one that no stranger's
name can be: loopback, an address, the name that the server listens on, or the host of a configured origin.
So a name that was pointed at this machine (DNS rebinding) does not pass as it. A page that another program
serves on loopback may connect.

What opens no WebSocket is for the page (page.py) or its link lab (lab.py). A reader of a page's file is
bounded in time and, with all others, in bytes.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import parse_qsl, urlsplit

from midstream.protocol.codec import CODECS
from midstream.server.config import is_loopback
from midstream.server.connections.lab import Lab
from midstream.server.connections.page import Answer, Page, refusal
from midstream.server.connections.probes import HEALTH_PATH, PATHS, Probes
from midstream.server.tally import Tally

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

    from midstream.server.connections.websocket import WebSocket

OPEN_SECONDS: Final = 10.0
"""How long a client may take from its first byte to the end of the HTTP handshake, or of a page's file."""
WAITING_BYTES: Final = 64 * 1024 * 1024
"""What all readers of a page's files together may keep waiting: a few hundred first visits at a time."""
_TOKEN_NAMES: Final = frozenset({"token", "access_token", "jwt"})
_SHOWN: Final = 100
"""Characters of a stranger's header that an answer repeats."""


class Handshake:
    """Answers the HTTP request with which every connection begins; websockets' ``process_request``."""

    def __init__(  # noqa: PLR0913 - what it is told by the settings
        self,
        allowed_origins: Sequence[str],
        probes: Probes,
        *,
        host: str = "127.0.0.1",
        has_tokens: bool = False,
        tally: Tally | None = None,
        page: Page | None = None,
        waiting: Callable[[], int] = lambda: 0,
        restart: Callable[[], None] | None = None,
    ) -> None:
        """Let pages of these origins in, besides those of loopback.

        Args:
            allowed_origins: such as ``https://chat.example.com``.
            host: what the server listens on.
            has_tokens: whether nothing is given without a token: then every ``Host`` will do.
            probes: answer ``/healthz``, ``/readyz`` and ``/metrics``.
            tally: where answers are counted.
            page: what else is served.
            waiting: gives the bytes of a page's files that are on their way.
            restart: ends the process and starts it anew, where the link lab may.

        """
        self._origins = frozenset(origin.rstrip("/").lower() for origin in allowed_origins)
        self._hosts = frozenset(urlsplit(origin).hostname for origin in self._origins)
        self._host = None if is_loopback(host) else host.lower()
        self._has_tokens = has_tokens
        self._probes = probes
        self._tally = tally or Tally()
        self._page = page
        self._waiting = waiting
        self._restart = restart
        self._lab = Lab(restarts=restart is not None)

    def __call__(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return the answer to a request that opens no WebSocket, or None to go on opening one."""
        path = request.path.partition("?")[0]
        upgrade = any("websocket" in value.lower() for value in request.headers.get_all("Upgrade"))
        if path in PATHS and not upgrade:
            peer = connection.transport.get_extra_info("peername")
            answer: Answer | None = self._probes.answer(request, path, peer)
        else:
            answer = self._misdirected(request) or (
                self._refused(request) if upgrade else self._served(request, path)
            )
        if answer is None:
            return None
        self._tally.answered(answer.status)
        return _response(cast("WebSocket", connection), request, answer)

    def _served(self, request: Request, path: str) -> Answer:
        """Let the page or its lab answer."""

        def header(name: str) -> str:
            return ", ".join(request.headers.get_all(name))

        if self._page is None:
            return refusal(
                HTTPStatus.NOT_FOUND,
                "This is a midstream server. It speaks WebSocket with the subprotocol "
                f"{' or '.join(CODECS)}, and answers GET {HEALTH_PATH}. There is no page here.\n",
            )
        if self._waiting() > WAITING_BYTES:
            return refusal(
                HTTPStatus.SERVICE_UNAVAILABLE, "Too many load the page. Try again.\n", ("Retry-After", "1")
            )
        answer = self._lab.answer(request.method, path, header)
        if answer is None:
            return self._page.answer(request.method, path, header)
        if answer.status is HTTPStatus.ACCEPTED and self._restart is not None:
            # websockets writes the answer before it gives the loop its turn
            asyncio.get_running_loop().call_soon(self._restart)
        return answer

    def _misdirected(self, request: Request) -> Answer | None:
        hosts = request.headers.get_all("Host")
        if len(hosts) == 1 and (self._has_tokens or self._is_here(hosts[0])):
            return None
        return refusal(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"The Host header is {_shown(hosts)}, which does not name this machine. Connect to "
            "ws://127.0.0.1 or ws://localhost and the port; a proxy in between must set Host so.\n",
        )

    def _refused(self, request: Request) -> Answer | None:
        found = token_in(request.path)
        if found is not None:
            return refusal(
                HTTPStatus.BAD_REQUEST,
                f"The URL has {found!r} in its query. Addresses stand in logs: give the token in hello, or "
                "in the header Authorization: Bearer, never in a URL. Take this one for known to others.\n",
            )
        origins, host = request.headers.get_all("Origin"), request.headers.get_all("Host")
        if len(origins) > 1 or not all(self._may_come_from(origin, host) for origin in origins):
            return refusal(
                HTTPStatus.FORBIDDEN,
                f"A page of {_shown(origins)} may not connect. If it is yours, add its origin to "
                "MIDSTREAM_ALLOWED_ORIGINS (the setting allowed_origins) of the server.\n",
            )
        offered = {
            name.strip()
            for value in request.headers.get_all("Sec-WebSocket-Protocol")
            for name in value.split(",")
        }
        if offered.isdisjoint(CODECS):
            return refusal(
                HTTPStatus.BAD_REQUEST,
                f"Offer a WebSocket subprotocol: {' or '.join(CODECS)}. The request offers "
                f"{_shown(sorted(offered))}.\n",
            )
        return None

    def _is_here(self, host: str) -> bool:
        name = _hostname(f"//{host}")
        if name is None:
            return False
        # a server on other addresses is reached by them, and by its name; no address can be a stranger's name
        is_own = self._host is not None and (name == self._host or _is_address(name))
        return is_own or is_loopback(name) or name in self._hosts

    def _may_come_from(self, origin: str, host: Sequence[str]) -> bool:
        if origin.rstrip("/").lower() in self._origins:
            return True
        if len(host) == 1 and _place(origin) == host[0].lower():
            return True  # our own page
        name = _hostname(origin)
        return name is not None and origin.lower().startswith(("http://", "https://")) and is_loopback(name)


def comes_back(request: Request) -> bool:
    """Say whether a client says, by the query ``resume``, that it comes back to go on (SPEC 3.1)."""
    return "resume" in request.path.partition("?")[2].split("&")


def _response(websocket: WebSocket, request: Request, answer: Answer) -> Response:
    response = websocket.respond(answer.status, "")  # has the headers of the connection
    del response.headers["Content-Type"], response.headers["Content-Length"]
    for name, value in answer.headers:
        response.headers[name] = value
    if request.method != "HEAD":
        response.body = answer.body
    websocket.answer_bytes = len(response.body)
    # by default it would be cut after two seconds, whatever its peer has read by then
    websocket.close_timeout = OPEN_SECONDS
    return response


def bearer_of(request: Request | None) -> str | None:
    """Return the token of an ``Authorization: Bearer`` header, if there is exactly one."""
    values = [] if request is None else request.headers.get_all("Authorization")
    scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    return token.strip() or None if scheme.lower() == "bearer" else None


def token_in(path: str) -> str | None:
    """Return the name of a parameter of a URL's query that holds a token."""
    names = [name.lower() for name, _ in parse_qsl(path.partition("?")[2], keep_blank_values=True)]
    return next((name for name in names if name in _TOKEN_NAMES), None)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _place(origin: str) -> str | None:
    """Return host and port of an origin, as a ``Host`` header has them."""
    scheme, _, place = origin.lower().partition("://")
    return place if scheme in {"http", "https"} else None


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
