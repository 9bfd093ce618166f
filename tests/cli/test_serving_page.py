"""Laws of the page and its lab in the command, in processes as a user has them."""

import http.client
import re
from pathlib import Path

import pytest

from midstream.client.client import Client
from midstream.web import page_folder, unbuilt_folder
from tests.cli.processes import WAITING, free_port, serving, started

RESTART = {"X-Midstream-Lab": "restart", "Sec-Fetch-Site": "same-origin"}


def asked(url: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Ask a server by HTTP; give the status and the body."""
    connection = http.client.HTTPConnection(url.removeprefix("ws://"), timeout=30)
    try:
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


async def test_the_command_serves_the_page_that_was_built_or_says_how_to_get_it(tmp_path: Path) -> None:
    """And it says where, on the line after the first."""
    async with serving(tmp_path) as (server, url):
        out = await server.until("chat page is at")
        await server.until("/\n")
        assert f"The chat page is at http{url.removeprefix('ws')}/\n" in server.out, out
        folder = page_folder() or unbuilt_folder()
        assert asked(url, "/s/a") == (200, (folder / "index.html").read_bytes())


def test_a_clone_without_a_page_has_one_in_words() -> None:
    """It names the command, and needs neither scripts nor styles, which could be missing too."""
    text = (unbuilt_folder() / "index.html").read_text("utf-8")
    assert "make page" in text
    assert not re.search(r"<script|<style|<link|style=|src=", text)


async def test_a_page_can_be_another_or_none(tmp_path: Path) -> None:
    """By flag or by variable; the flag wins."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("mine")
    for flags, variable, status in (
        (("--page", "mine"), "off", 200),
        (("--no-page",), "mine", 404),
        ((), "mine", 200),
        ((), "off", 404),
    ):
        async with started(
            "serve", "--port", "0", *flags, folder=tmp_path, environment={"MIDSTREAM_PAGE": variable}
        ) as server:
            url = (await server.until("Ctrl-C")).split()[2]
            assert asked(url, "/")[0] == status
    async with started("serve", "--port", "0", "--page", "nowhere", folder=tmp_path) as server:
        ended = await server.ended()
    assert ended.code == 1
    assert ended.err == (
        "midstream: page: nowhere cannot be read (No such file or directory). "
        "Name a folder that has a page in it, or off.\n"
    )


@pytest.mark.parametrize("port", ["0", "given"])
async def test_the_lab_kills_the_server_as_hard_as_a_signal_and_it_comes_back(
    tmp_path: Path, port: str
) -> None:
    """In mid-turn: same process id, port and database; nobody ended the turn, so the next start does."""
    (tmp_path / "waiting.py").write_text(WAITING)
    port = str(free_port()) if port == "given" else port
    async with serving(tmp_path, "--agent", "waiting:agent", "--lab", "--port", port) as (server, url):
        async with Client(url) as client:
            session = await client.session("s", create=True)
            handle = await session.prompt("hello")
            await handle.started()
            assert asked(url, "/lab") == (200, b'{"restart":true}\n')
            assert asked(url, "/lab/restart", RESTART) == (202, b'{"restart":true}\n')
            turn = await handle.finished()
            assert (turn.state, turn.error and turn.error.code) == ("failed", "runtime_interrupted")
            assert await session.verify()
        await server.until(f"{url} (")
        assert server.out.count(f"Listening on {url} (") == 2
        assert "Stopping" not in server.out
        assert asked(url, "/lab/restart", RESTART)[0] == 202  # and again
        async with Client(url) as client:
            assert len((await client.session("s")).messages) == 2
    assert server.err == ""


async def test_without_the_switch_the_server_cannot_be_restarted(tmp_path: Path) -> None:
    """Not even by its own page."""
    async with serving(tmp_path) as (server, url):
        assert asked(url, "/lab/restart", RESTART)[0] == 404
        assert asked(url, "/lab") == (200, b'{"restart":false}\n')
        assert server.process.returncode is None


async def test_the_demo_invites_to_its_page_and_its_chat_survives_the_lab(tmp_path: Path) -> None:
    """The chat is in another process, and comes back by itself."""
    port = free_port()
    async with started("demo", "--port", str(port), folder=tmp_path, typing=True) as demo:
        await demo.until("live")
        if page_folder():
            assert f"Open the chat page:  http://127.0.0.1:{port}/\n" in demo.out
        else:
            assert "make page" in demo.out
        await demo.type("hello")
        await demo.until("demo agent")
        assert asked(f"ws://127.0.0.1:{port}", "/lab/restart", RESTART)[0] == 202
        await demo.type("use a tool")
        await demo.until("**3 words**")
        ended = await demo.ended()
    assert "The server stops too" in ended.out
    assert "Traceback" not in ended.err
