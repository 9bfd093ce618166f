"""Laws of readiness, over real sockets and files: clients are sent where commits reach the disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from midstream.server import RunningServer, Server
from midstream.server.storage.database import Database
from midstream.server.storage.schema import migrate
from tests.disk import Disk, Fault, broken_disk
from tests.end_to_end.agents import work
from tests.end_to_end.scraping import get, scrape


async def until_word(server: RunningServer, word: str) -> int:
    """Ask until the server says a word, and return the status that it says it with."""
    async with asyncio.timeout(30):
        while True:
            reply = await get(server, "/readyz")
            if msgspec.json.decode(reply.body) == {"status": word}:
                return reply.status


def server_on(disk: Disk, path: Path) -> Server:
    """Return a server whose file lies on a disk that can break."""

    async def opened(name: str) -> Database:
        return await Database.open(name, migrate=migrate, vfs=disk.name)

    return Server(agent=work, database=path, open_database=opened)


@pytest.mark.parametrize("fault", [Fault.DISK_FULL, Fault.FSYNC_ERROR])
async def test_a_server_without_traffic_notices_that_its_disk_fails_and_that_it_works_again(
    tmp_path: Path, fault: Fault
) -> None:
    """To be asked is enough, and it still lives all the while."""
    with broken_disk() as disk:
        async with server_on(disk, tmp_path / "chat.db").listen("127.0.0.1", 0) as server:
            assert await until_word(server, "ready") == 200
            disk.fail(fault)
            assert await until_word(server, "storage") == 503
            assert (await get(server, "/healthz")).status == 200
            assert (await scrape(server))("midstream_ready") == 0
            assert (await scrape(server))("midstream_storage_errors_total", code="commit_failed") > 0
            disk.repair()
            assert await until_word(server, "ready") == 200
            assert (await scrape(server))("midstream_ready") == 1


async def test_a_server_that_drains_is_not_ready(tmp_path: Path) -> None:
    """It says so at once, and goes on to answer."""
    async with Server(agent=work, database=tmp_path / "chat.db").listen("127.0.0.1", 0) as server:
        assert await until_word(server, "ready") == 200
        await server.drain(0)
        assert await until_word(server, "draining") == 503


async def test_a_server_whose_database_another_process_took_says_that(tmp_path: Path) -> None:
    """Nothing that is sent there could be stored."""
    path = tmp_path / "chat.db"
    async with Server(agent=work, database=path).listen("127.0.0.1", 0) as server:
        assert await until_word(server, "ready") == 200
        path.rename(tmp_path / "moved.db")
        assert await until_word(server, "superseded") == 503


async def test_readiness_answers_head_and_nothing_else(tmp_path: Path) -> None:
    """As health does."""
    async with Server(agent=work, database=tmp_path / "chat.db").listen("127.0.0.1", 0) as server:
        assert (await get(server, "/readyz", method="HEAD")).status == 200
        assert (await get(server, "/readyz", method="DELETE")).status == 405
