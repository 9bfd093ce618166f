"""Laws of serving the page over real sockets: beside WebSockets, and to peers that do not read."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from midstream.server.clock import SystemClock
from midstream.server.config import Config, ConfigError
from midstream.server.connections import handshake
from midstream.server.connections import listener as listening
from midstream.server.connections.listener import Listener, listen
from midstream.server.ids import RandomIds
from tests.server.connections.registry import Notes
from tests.server.connections.serving import client_of, http, serving

INDEX = b"<!doctype html><title>a page</title>"
BIG = "assets/big.woff2"
LAB = "GET /lab/restart HTTP/1.1\nHost: localhost\nX-Midstream-Lab: restart\nSec-Fetch-Site: same-origin"


@pytest.fixture
def page(tmp_path: Path) -> Config:
    """Give the settings of a server whose page has a big file, too."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_bytes(INDEX)
    (tmp_path / BIG).write_bytes(os.urandom(1024 * 1024) * 8)
    return Config(page=str(tmp_path))


def get(path: str, *headers: str, method: str = "GET", host: str = "localhost:8787") -> str:
    """Return a request."""
    return "\n".join((f"{method} {path} HTTP/1.1", f"Host: {host}", *headers))


async def deaf(listener: Listener, path: str) -> socket.socket:
    """Ask for a file and read nothing of it."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    sock.settimeout(0)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, (listener.host, listener.port))
    await loop.sock_sendall(sock, get(path).replace("\n", "\r\n").encode() + b"\r\n\r\n")
    return sock


async def all_of(sock: socket.socket) -> bytes:
    """Read what is there until the end."""
    loop, read = asyncio.get_running_loop(), bytearray()
    with sock:
        try:
            while piece := await loop.sock_recv(sock, 65_536):
                read += piece
        except ConnectionResetError:
            pass
    return bytes(read)


async def test_the_page_is_served_where_websockets_are(page: Config) -> None:
    """One address for both, at any path."""
    async with serving(Notes(), page) as listener, client_of(listener):
        for path in ("/", "/s/abc?lab", "/?lab"):
            status, headers, body = await http(listener, get(path))
            assert (status, body) == (200, INDEX)
            assert headers["Content-Length"] == str(len(INDEX))
            assert headers["Connection"] == "close"
            assert headers["Server"].startswith("midstream")
        assert (await http(listener, get("/assets/none.js")))[0] == 404
        assert (await http(listener, "GET /healthz HTTP/1.1"))[2] == b'{"status":"ok","connections":1}\n'


async def test_head_says_what_get_would_and_what_did_not_change_has_no_body(page: Config) -> None:
    """As a browser asks when it has the page already."""
    async with serving(Notes(), page) as listener:
        status, headers, body = await http(listener, get("/", method="HEAD"))
        assert (status, headers["Content-Length"], body) == (200, str(len(INDEX)), b"")
        status, headers, body = await http(listener, get("/", f"If-None-Match: {headers['ETag']}"))
        assert (status, body) == (304, b"")
        assert "Content-Length" not in headers
        status, headers, _ = await http(listener, get("/", method="POST"))
        assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", f"/{BIG}", "/nothing", "/lab", "/lab/restart"])
async def test_a_stranger_s_name_for_this_machine_gets_no_page(page: Config, path: str) -> None:
    """DNS rebinding: a page that is read under a stranger's name belongs to the stranger."""
    async with serving(Notes(), page) as listener:
        assert (await http(listener, get(path, host="evil.example")))[0] == 421
        assert (await http(listener, f"GET {path} HTTP/1.1"))[0] == 421
        assert (await http(listener, get(path, "Host: localhost")))[0] == 421


async def test_a_draining_server_still_serves_the_page(page: Config) -> None:
    """It shows what it kept and connects to the next server; without it there is an error to look at."""
    async with serving(Notes(), page) as listener:
        await listener.drain(0)
        assert (await http(listener, get("/")))[0] == 200


async def test_a_page_that_cannot_be_served_is_refused_at_the_start(tmp_path: Path) -> None:
    """A server that starts has its page."""
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match="page:"):
            async with serving(Notes(), Config(page=str(folder))):
                pass


async def test_a_peer_that_does_not_read_a_file_is_cut_and_holds_up_no_memory_for_ever(
    page: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits, what it keeps counts; when its time is over, others are served again."""
    for module in (handshake, listening):
        monkeypatch.setattr(module, "OPEN_SECONDS", 0.5)
    monkeypatch.setattr(handshake, "WAITING_BYTES", 1_000_000)
    async with serving(Notes(), page) as listener:
        sock = await deaf(listener, f"/{BIG}")
        seen = set[int]()
        while 503 not in seen:  # it may not have been asked yet
            seen.add((await http(listener, get("/")))[0])
        status, headers, _ = await http(listener, get("/"))
        assert (status, headers["Retry-After"]) == (503, "1")
        async with client_of(listener):  # a WebSocket opens all the same
            while (await http(listener, get("/")))[0] != 200:
                pass
        assert len(await all_of(sock)) < 8 * 1024 * 1024


@pytest.mark.parametrize("kilobytes", [100, 200, 300, 400, 500, 1_000])
async def test_a_slow_reader_gets_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kilobytes: int
) -> None:
    """It has as long as for a handshake, not the moment that a WebSocket gets to answer a close."""
    monkeypatch.setattr(listening, "CLOSE_SECONDS", 0)
    (tmp_path / "index.html").write_bytes(os.urandom(1_000) * kilobytes)
    async with serving(Notes(), Config(page=str(tmp_path))) as listener:
        sock = await deaf(listener, "/")
        await http(listener, "GET /healthz HTTP/1.1")  # when this is answered, so is that
        assert len(await all_of(sock)) > kilobytes * 1_000


@asynccontextmanager
async def in_a_lab(config: Config, ports: list[int]) -> AsyncGenerator[Listener]:
    """Listen with a lab whose restarts are noted."""
    async with listen(
        Config(page=config.page, port=0), Notes(), None, SystemClock(), RandomIds(), restart=ports.append
    ) as listener:
        yield listener


async def test_the_lab_restarts_the_server_once_it_has_answered(page: Config) -> None:
    """The restart is told the port, which may have been any free one."""
    ports: list[int] = []
    async with in_a_lab(page, ports) as listener:
        status, _, body = await http(listener, LAB)
        assert (status, body) == (202, b'{"restart":true}\n')
        assert ports == [listener.port]
        for header in ("X-Midstream-Lab: restart", "Sec-Fetch-Site: same-origin"):
            assert (await http(listener, LAB.replace(f"\n{header}", "")))[0] == 403
        assert (await http(listener, LAB.replace("GET", "OPTIONS")))[0] == 405
        assert (await http(listener, LAB.replace("localhost", "evil.example")))[0] == 421
        assert ports == [listener.port]


async def test_without_a_lab_nothing_restarts(page: Config) -> None:
    """The address is like any other that is not there."""
    async with serving(Notes(), page) as listener:
        assert (await http(listener, LAB))[0] == 404
        assert (await http(listener, get("/lab")))[2] == b'{"restart":false}\n'
