"""Laws of plain HTTP and of who may open a WebSocket, over real sockets."""

import pytest

from midstream.server.config import Config
from midstream.server.connections.listener import Listener
from tests.server.connections.registry import Notes
from tests.server.connections.serving import client_of, http, serving

UPGRADE = (
    "GET / HTTP/1.1\nHost: {host}\nUpgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Version: 13\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\nSec-WebSocket-Protocol: {protocol}"
)


async def upgrade(
    listener: Listener, *headers: str, host: str = "localhost", protocol: str = "midstream.v1.json"
) -> int:
    """Try to open a WebSocket with extra headers, and return the HTTP status."""
    request = "\n".join([UPGRADE.format(host=host, protocol=protocol), *headers])
    status, _, _ = await http(listener, request)
    return status


async def test_health_is_ok_while_serving_and_not_while_draining() -> None:
    """200 and JSON for a balancer that sends clients here, 503 for one that should not."""
    async with serving(Notes()) as listener:
        async with client_of(listener):
            status, headers, body = await http(listener, "GET /healthz HTTP/1.1\nHost: localhost")
            assert status == 200
            assert headers["Content-Type"] == "application/json"
            assert body == b'{"status":"ok","connections":1}\n'
        await listener.drain(0)
        status, _, body = await http(listener, "GET /healthz?verbose HTTP/1.0")
        assert status == 503
        assert body == b'{"status":"draining","connections":0}\n'


async def test_health_answers_head_without_a_body_and_nothing_else() -> None:
    """HEAD says what GET would; other methods are told which there are."""
    async with serving(Notes()) as listener:
        status, headers, body = await http(listener, "HEAD /healthz HTTP/1.1\nHost: localhost")
        assert (status, body) == (200, b"")
        assert headers["Content-Length"] == "32"
        status, headers, _ = await http(listener, "POST /healthz HTTP/1.1\nHost: localhost")
        assert status == 405
        assert headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/", "/index.html", "/healthz/more"])
async def test_other_pages_do_not_exist_and_the_answer_says_what_does(path: str) -> None:
    """Whoever opens the address in a browser learns what it is."""
    async with serving(Notes()) as listener:
        status, _, body = await http(listener, f"GET {path} HTTP/1.1\nHost: 127.0.0.1")
        assert status == 404
        for word in (b"midstream", b"WebSocket", b"/healthz", b"midstream.v1.msgpack"):
            assert word in body


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "https://chat.example.com.evil.example",
        "http://localhost@evil.example",
        "http://chat.example.com",
        "null",
        "file://",
        "",
        "localhost",
        "http://[bad",
    ],
)
async def test_a_page_of_another_site_cannot_connect(origin: str) -> None:
    """A browser lets any page try; the server looks at where the page is from."""
    config = Config(allowed_origins=("https://chat.example.com",))
    async with serving(Notes(), config) as listener:
        assert await upgrade(listener, f"Origin: {origin}") == 403


async def test_two_origins_are_refused() -> None:
    """A good one does not vouch for another."""
    async with serving(Notes()) as listener:
        assert await upgrade(listener, "Origin: http://localhost", "Origin: https://evil.example") == 403


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:5173", "http://127.0.0.1", "https://[::1]:8443", "HTTPS://Chat.Example.com/"],
)
async def test_pages_of_this_machine_and_of_configured_sites_connect(origin: str) -> None:
    """So a page in development works without configuration."""
    config = Config(allowed_origins=("https://chat.example.com",))
    async with serving(Notes(), config) as listener:
        assert await upgrade(listener, f"Origin: {origin}") == 101


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "localhost@evil.example", "", "::1::"],
)
async def test_a_name_that_was_rebound_to_this_machine_does_not_pass(host: str) -> None:
    """DNS rebinding: the stranger's name resolves to 127.0.0.1, but the Host header still says the name."""
    async with serving(Notes()) as listener:
        assert await upgrade(listener, host=host) == 421
        status, _, _ = await http(listener, f"GET / HTTP/1.1\nHost: {host}")
        assert status == 421


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8787", "127.0.0.1:1", "[::1]:8787", "chat.example.com"]
)
async def test_this_machine_and_the_hosts_of_configured_sites_pass(host: str) -> None:
    """A proxy for a configured site may pass its Host on."""
    config = Config(allowed_origins=("https://chat.example.com",))
    async with serving(Notes(), config) as listener:
        assert await upgrade(listener, host=host) == 101


@pytest.mark.parametrize("protocol", ["chat", "midstream.v2.json", "midstream.v1"])
async def test_a_subprotocol_must_be_one_of_ours(protocol: str) -> None:
    """A later version of the protocol is not this one."""
    async with serving(Notes()) as listener:
        assert await upgrade(listener, protocol=protocol) == 400
        assert await upgrade(listener, protocol=f"{protocol}, midstream.v1.msgpack") == 101


async def test_the_preferred_subprotocol_is_msgpack() -> None:
    """A client that offers both gets the smaller one."""
    async with serving(Notes()) as listener:
        request = UPGRADE.format(host="localhost", protocol="midstream.v1.json, midstream.v1.msgpack")
        _, headers, _ = await http(listener, request)
        assert headers["Sec-WebSocket-Protocol"] == "midstream.v1.msgpack"
