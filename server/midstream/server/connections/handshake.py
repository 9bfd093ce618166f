"""Who may open a WebSocket, and who answers plain HTTP requests (SPEC 3.1).

There are no tokens yet, so the server listens on loopback only. That alone keeps other machines out,
but not a browser on this one: a page of any site may try to open a WebSocket to a loopback port.
Two checks stop that. The ``Origin`` that a browser sends must be a page of this machine, or one that
was configured; programs send none, and pass. And the ``Host`` must name loopback, or the host
of a configured origin, so that a stranger's name that was pointed at 127.0.0.1 (DNS rebinding)
does not pass as this machine. A page that another program serves on loopback may connect.

What opens no WebSocket is for the page (page.py) or its link lab (lab.py). A reader of a page's file is
bounded in time and, with all others, in bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

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
_SHOWN: Final = 100
"""Characters of a stranger's header that an answer repeats."""


class Handshake:
    """Answers the HTTP request with which every connection begins; websockets' ``process_request``."""

    def __init__(
        self,
        allowed_origins: Sequence[str],
        probes: Probes,
        *,
        tally: Tally | None = None,
        page: Page | None = None,
        waiting: Callable[[], int] = lambda: 0,
        restart: Callable[[], None] | None = None,
    ) -> None:
        """Let pages of these origins in, besides those of loopback.

        Args:
            allowed_origins: such as ``https://chat.example.com``.
            probes: answer ``/healthz``, ``/readyz`` and ``/metrics``.
            tally: where answers are counted.
            page: what else is served.
            waiting: gives the bytes of a page's files that are on their way.
            restart: ends the process and starts it anew, where the link lab may.

        """
        self._origins = frozenset(origin.rstrip("/").lower() for origin in allowed_origins)
        self._hosts = frozenset(urlsplit(origin).hostname for origin in self._origins)
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
        if len(hosts) == 1 and self._is_here(hosts[0]):
            return None
        return refusal(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"The Host header is {_shown(hosts)}, which does not name this machine. Connect to "
            "ws://127.0.0.1 or ws://localhost and the port; a proxy in between must set Host so.\n",
        )

    def _refused(self, request: Request) -> Answer | None:
        origins = request.headers.get_all("Origin")
        if len(origins) > 1 or not all(map(self._may_come_from, origins)):
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
        return name is not None and (is_loopback(name) or name in self._hosts)

    def _may_come_from(self, origin: str) -> bool:
        if origin.rstrip("/").lower() in self._origins:
            return True
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
