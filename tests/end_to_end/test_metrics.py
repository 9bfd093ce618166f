"""Laws of the metrics, over real sockets: what happens is counted, exactly, and nobody's words are told."""

from __future__ import annotations

import asyncio
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from midstream.protocol.calls import EmptyResult, SessionResult
from midstream.protocol.errors import AlreadyExists, InvalidRequest, NotFound, UnknownMethod
from midstream.protocol.frames import Ping
from midstream.protocol.limits import Limits
from midstream.server import Server
from midstream.server.clock import SystemClock
from midstream.server.connections.minting import mint
from tests.end_to_end.agents import work
from tests.end_to_end.scraping import Scrape, get, scrape, until
from tests.end_to_end.stage import OpenStage, until_ended, until_text

NOISE = ("midstream_http_answers_total{status=200}", "midstream_loop_lag_seconds_count")
"""What scraping itself adds to, and what time does."""
SECRET = "xyzzy-4711"  # noqa: S105 - a word to look for
PIECE = "0123456789abcdef" * 4_096


def counted(after: Scrape, before: Scrape) -> dict[str, float]:
    """Return what was counted between two scrapes, but for the noise."""
    return {name: more for name, more in after.since(before).items() if name not in NOISE}


async def test_a_turn_is_counted_exactly(open_stage: OpenStage) -> None:
    """Each call, commit, version, delivery and end once, and nothing else."""
    stage = await open_stage()
    first, second = await stage.reader(), await stage.reader()
    await stage.user()
    before = await scrape(stage.running)
    turn = await stage.turn("hello")
    async with turn.step() as step, step.text() as text:
        await text.append("one")
        await until_text(first, "one")
    during = await scrape(stage.running)
    assert during("midstream_turns_running") == 1
    await stage.finish(turn, first)
    await until_ended(second, turn.turn_id)
    after = await scrape(stage.running)
    version = first.replica.version
    changes = counted(after, before)
    flushes = changes.pop("midstream_flush_seconds_count", 0)
    assert flushes <= 2
    commits = changes.pop("midstream_commit_seconds_count")
    # alone, each write is a batch
    assert changes.pop("midstream_commit_batch_seconds_count") == commits
    assert changes.pop("midstream_commit_batch_writes_count") == commits
    versions = changes.pop("midstream_versions_total")
    assert versions == version - 1, "but for the session's making"
    assert changes.pop("midstream_deliveries_total") == 2 * (len(first.tags) - 1)
    assert changes.pop("midstream_read_seconds_count", 0) <= 2
    assert changes == {
        "midstream_call_seconds_count{method=prompt}": 1,
        "midstream_fanout_seconds_count": 1,
        "midstream_turns_ended_total{state=completed}": 1,
    }
    assert after("midstream_turns_running") == 0
    assert after("midstream_subscriptions", state="live") == 2
    assert after("midstream_connections", state="open") == 3
    assert after("midstream_sessions_loaded") == 1


async def test_connections_are_counted_when_they_open_and_once_when_they_end(open_stage: OpenStage) -> None:
    """Those that were opened are those that are open, and those that ended, by whoever ended them."""
    stage = await open_stage()
    before = await scrape(stage.running)
    lines = [await stage.line() for _ in range(3)]
    await lines[0].close()  # without a word
    await lines[1].send("no frame")
    after = await until(stage.running, lambda now: now("midstream_connections", state="open") == 2)
    opened = after("midstream_connections_opened_total")
    there = sum(after("midstream_connections", state=state) for state in ("hello", "open"))
    ended = sum(
        value for (name, _), value in after.series.items() if name == "midstream_connections_closed_total"
    )
    assert opened == there + ended
    assert counted(after, before)["midstream_hellos_total"] == 3
    assert after("midstream_connections_closed_total", by="client", code="1006") == 1
    assert after("midstream_connections_closed_total", by="server", code="4500") == 1


async def test_refusals_are_counted_by_their_code(open_stage: OpenStage) -> None:
    """One for each error that was sent, and a method that nobody knows makes no series."""
    stage = await open_stage()
    user = await stage.user()
    before = await scrape(stage.running)
    for _ in range(2):
        with pytest.raises(NotFound):
            await user.ask(EmptyResult, "messages", session_id="nowhere")
    with pytest.raises(AlreadyExists):
        await user.ask(SessionResult, "sessions.create", session_id="s", title="another")
    with pytest.raises(InvalidRequest):
        await user.ask(EmptyResult, "prompt", session_id="s")
    for name in ("unheard", "of"):
        with pytest.raises(UnknownMethod):
            await user.ask(EmptyResult, name)
    changes = counted(await scrape(stage.running), before)
    assert {name: more for name, more in changes.items() if "refusals" in name or "call" in name} == {
        "midstream_refusals_total{code=not_found}": 2,
        "midstream_refusals_total{code=already_exists}": 1,
        "midstream_refusals_total{code=invalid}": 1,
        "midstream_refusals_total{code=unknown_method}": 2,
        "midstream_call_seconds_count{method=messages}": 2,
        "midstream_call_seconds_count{method=sessions.create}": 1,
        "midstream_call_seconds_count{method=prompt}": 1,
        "midstream_call_seconds_count{method=other}": 2,
    }


async def test_how_readers_catch_up_is_counted_by_what_they_got(open_stage: OpenStage) -> None:
    """A first visit resets, a short absence is replayed; the bytes are those that were sent."""
    stage = await open_stage()
    before = await scrape(stage.running)
    reader = await stage.reader()
    first = await scrape(stage.running)
    assert first.since(before)["midstream_syncs_total{mode=reset}"] == 1
    await reader.line.close()
    turn = await stage.turn("while you were away")
    await reader.rejoin(await stage.line())
    second = await scrape(stage.running)
    assert second.since(first)["midstream_syncs_total{mode=replay}"] == 1
    assert second("midstream_sync_bytes_total", mode="replay") == len(reader.line.heard[-1])
    await stage.finish(turn, reader)


async def test_a_reader_that_is_slow_is_conflated(open_stage: OpenStage) -> None:
    """It gets one sync in place of what there was no room for, and is not cut."""
    stage = await open_stage(outbox_bytes=4_096, heartbeat_ms=600_000)
    slow = await stage.reader()
    slow.line.stop_reading()
    turn = await stage.turn()
    async with turn.step() as step, step.text() as text:
        while not (await scrape(stage.running))("midstream_subscriptions", state="behind"):
            await text.append(PIECE)
        assert (await scrape(stage.running))("midstream_outbox_largest_bytes") > 0
        slow.line.read_on()
        found = await until(stage.running, lambda now: now("midstream_conflations_total") > 0)
    assert found("midstream_stalls_total") == 0
    await stage.finish(turn, slow)
    after = await scrape(stage.running)
    assert after("midstream_conflations_total") == slow.tags.count("sync")
    await stage.proves(slow)


async def test_a_reader_that_does_not_read_at_all_is_cut_and_counted_as_a_stall(
    open_stage: OpenStage,
) -> None:
    """Though it talks: what counts is that not one byte can be sent to it."""
    stage = await open_stage(outbox_bytes=4_096, heartbeat_ms=500)
    sleeper = await stage.line()
    await stage.reader(line=sleeper)
    sleeper.stop_reading()
    turn = await stage.turn()
    async with turn.step() as step, step.text() as text:
        async with asyncio.timeout(60):
            while not (found := await scrape(stage.running))("midstream_stalls_total"):
                if not found("midstream_subscriptions", state="behind"):
                    await text.append(PIECE)
                await sleeper.send(Ping(1))
    assert found("midstream_stalls_total") == 1
    assert found("midstream_connections_closed_total", by="server", code="4002") == 1
    assert found("midstream_conflations_total") == 0
    stage.puppet.end(turn)


async def test_a_scrape_under_load_misses_nothing(open_stage: OpenStage) -> None:
    """Counters never go back, and in the end all is there."""
    stage = await open_stage(tick_ms=0, tick_limit_ms=0)
    readers = [await stage.reader() for _ in range(4)]
    turn = await stage.turn()
    seen = [await scrape(stage.running)]

    async def talk() -> None:
        async with turn.step() as step, step.text() as text:
            for number in range(500):
                await text.append(f"{number} ")
                await asyncio.sleep(0)

    talking = asyncio.create_task(talk())
    while not talking.done():
        seen.append(await scrape(stage.running))
    await talking
    for reader in readers:
        await stage.finish(turn, reader)
    seen.append(await scrape(stage.running))
    for before, after in pairwise(seen):
        assert all(more > 0 for more in after.since(before).values())
    assert seen[-1]("midstream_versions_total") == readers[0].replica.version - 1


async def test_a_thousand_sessions_make_no_series(open_stage: OpenStage) -> None:
    """Nor do their readers, prompts and titles: labels have values out of tables of ours."""
    stage = await open_stage(limits=Limits(calls_per_second=1_000_000))
    user = await stage.user()

    async def use(session_id: str) -> None:
        await user.ask(SessionResult, "sessions.create", session_id=session_id, title=f"title {session_id}")
        await user.ask(EmptyResult, "unsubscribe", session_id=session_id)
        with pytest.raises(NotFound):
            await user.ask(EmptyResult, "message", session_id=session_id, message_id=f"m{session_id}")

    await use("first")
    await scrape(stage.running)
    before = await scrape(stage.running)
    for start in range(0, 1_000, 50):
        await asyncio.gather(*(use(f"session-{number}") for number in range(start, start + 50)))
    after = await scrape(stage.running)
    assert after("midstream_sessions_loaded") >= 1_000
    assert after.series.keys() == before.series.keys()


async def test_no_text_name_or_id_is_in_the_metrics(open_stage: OpenStage) -> None:
    """Whatever a secret is put into: text, ids, titles, methods, codes, headers."""
    stage = await open_stage()
    user = await stage.user()
    await user.ask(SessionResult, "sessions.create", session_id=f"s-{SECRET}", title=SECRET)
    reader = await stage.reader(f"s-{SECRET}")
    turn = await stage.turn(SECRET, session_id=f"s-{SECRET}")
    async with turn.step() as step:
        tool = await step.tool(SECRET, input={"key": SECRET})
        await tool.complete(SECRET)
    await stage.finish(turn, reader, RuntimeError(SECRET))
    with pytest.raises(UnknownMethod):
        await user.ask(EmptyResult, SECRET)
    await get(stage.running, f"/{SECRET}?token={SECRET}", f"X-Secret: {SECRET}")
    found = await scrape(stage.running)
    assert found("midstream_turns_ended_total", state="failed") == 1
    assert SECRET not in found.text
    assert "xyzzy" not in (await get(stage.running, "/metrics")).body


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-For: 10.0.0.1",
        "Forwarded: for=10.0.0.1",
        "X-Real-IP: 10.0.0.1",
        "Via: 1.1 a",
        "Origin: http://localhost",
    ],
)
async def test_what_comes_through_a_proxy_or_from_a_page_gets_no_metrics(
    open_stage: OpenStage, header: str
) -> None:
    """To a proxy on this machine all the world looks like loopback."""
    stage = await open_stage()
    reply = await get(stage.running, "/metrics", header)
    assert (reply.status, "midstream_" in reply.body) == (403, False)


async def test_a_strangers_name_for_this_machine_gets_no_metrics(open_stage: OpenStage) -> None:
    """A page whose name was pointed at 127.0.0.1 asks by that name."""
    stage = await open_stage()
    assert (await get(stage.running, "/metrics", host="rebound.example")).status == 403
    assert (await get(stage.running, "/metrics", method="POST")).status == 405


async def test_metrics_that_are_off_are_not_there(open_stage: OpenStage) -> None:
    """For nobody."""
    stage = await open_stage(metrics="off")
    assert (await get(stage.running, "/metrics")).status == 404
    assert (await get(stage.running, "/readyz")).status == 200


async def test_without_the_package_the_answer_says_what_to_install(
    open_stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server itself does not need it."""
    stage = await open_stage()
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    reply = await get(stage.running, "/metrics")
    assert reply.status == 501
    assert "midstream[metrics]" in reply.body


@pytest.mark.parametrize(
    ("scopes", "ttl", "status"),
    [(["admin"], 60, 200), (["read", "write", "agent"], 60, 403), (["admin"], -60, 403)],
)
async def test_from_elsewhere_metrics_are_for_tokens_of_scope_admin(
    tmp_path: Path, scopes: list[str], ttl: int, status: int
) -> None:
    """They open what a proxy's header closes; no other token does, nor one that has expired."""
    key = "k" * 32
    server = Server(agent=work, database=tmp_path / "chat.db", token_secret=key)
    expires_at = SystemClock().wall_ms() // 1_000 + ttl
    token = mint(key, subject="ops", scopes=scopes, expires_at=expires_at)
    async with server.listen("127.0.0.1", 0) as running:
        via = "X-Forwarded-For: 10.0.0.1"
        reply = await get(running, "/metrics", via, f"Authorization: Bearer {token}", host="chat.example.com")
        assert reply.status == status
        assert (await get(running, "/metrics", via)).status == 403
        assert (await get(running, "/metrics")).status == 200


async def test_behind_a_proxy_that_ends_tls_only_a_token_gets_metrics(tmp_path: Path) -> None:
    """It may be on this machine, and need not say for whom it asks."""
    server = Server(
        agent=work, database=tmp_path / "chat.db", token_secret="k" * 32, tls_ends_at_a_proxy=True
    )
    async with server.listen("127.0.0.1", 0) as running:
        assert (await get(running, "/metrics")).status == 403
        assert (await get(running, "/readyz")).status == 200
