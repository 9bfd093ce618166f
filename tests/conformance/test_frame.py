"""What both halves of the kit rest on: cases, outcomes, reports and the proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from xml.etree import ElementTree as ET

import pytest

from midstream.conformance import Case, Failed, Faults, Outcome, Report, Skipped, Suite, proxy_to, run
from midstream.conformance.outcome import expect
from midstream.conformance.report import FORMS


class Nothing:
    """A scene in which nothing is said."""

    log: list[str] = ["c1 → <hello> & \x00"]  # noqa: RUF012 - nobody changes it


@asynccontextmanager
async def nothing(case: Case[Nothing]) -> AsyncGenerator[Nothing]:
    """Make the scene."""
    del case
    yield Nothing()


def suite() -> Suite[Nothing]:
    """Return a suite with a case of each outcome."""
    cases = Suite[Nothing]()

    @cases.case("one.passes", "4.4", "G6")
    async def _passes(_: Nothing) -> None:
        """A case passes."""

    @cases.case("one.fails", "4.4", "R2")
    async def _fails(_: Nothing) -> None:
        """A case fails."""
        expect("1 < 2 & so on", 2, 1)

    @cases.case("two.skips", "14.2", needs=["agent"])
    async def _skips(_: Nothing) -> None:
        """A case is skipped."""
        raise Skipped("there is nobody")

    @cases.case("two.breaks", "5")
    async def _breaks(_: Nothing) -> None:
        """A case breaks."""
        raise RuntimeError("the kit is at fault")

    @cases.case("two.hangs", "5", seconds=0.01)
    async def _hangs(_: Nothing) -> None:
        """A case hangs."""
        await asyncio.Event().wait()

    return cases


async def test_each_case_ends_in_one_outcome_with_its_reason() -> None:
    """A failure has both sides, a skip its reason, and a case that hangs an end."""
    results = {one.id: one for one in await run(list(suite()), nothing, jobs=3)}
    outcomes = {name: one.outcome for name, one in results.items()}
    assert outcomes == {
        "one.passes": Outcome.PASSED,
        "one.fails": Outcome.FAILED,
        "two.skips": Outcome.SKIPPED,
        "two.breaks": Outcome.ERROR,
        "two.hangs": Outcome.FAILED,
    }
    assert (results["one.fails"].expected, results["one.fails"].seen) == ("1", "2")
    assert results["two.skips"].what == "there is nobody"


async def test_every_report_has_every_case() -> None:
    """The table, JSON, JUnit XML and the page name each case and its outcome, whatever stood on the wire."""
    results = await run(list(suite()), nothing)
    report = Report(kind="server", subject="ws://x", software="s/1", seed=7, seconds=1.5, results=results)
    texts = {name: form(report) for name, form in FORMS.items()}
    assert all(one.id in text for text in texts.values() for one in results)
    assert not report.is_good
    assert [one["outcome"] for one in json.loads(texts["json"])["results"]] == [
        one.outcome for one in results
    ]
    junit = ET.fromstring(texts["junit"])  # noqa: S314 - we wrote it
    assert len(junit.findall(".//failure")) == 2
    assert len(junit.findall(".//skipped")) == 1
    assert "<hello>" not in texts["html"]
    fetched = [word for word in ("<script", "<link", "src=", "@import") if word in texts["html"]]
    assert fetched == []


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("4", ["one.passes", "one.fails"]),
        ("4.4", ["one.passes", "one.fails"]),
        ("two", ["two.skips", "two.breaks", "two.hangs"]),
        ("R2", ["one.fails"]),
        ("*.fails", ["one.fails"]),
        ("14", ["two.skips"]),
    ],
)
def test_cases_are_chosen_by_id_chapter_section_and_guarantee(pattern: str, found: list[str]) -> None:
    """A section names those below it, and not those whose number merely begins alike."""
    assert [case.id for case in suite().chosen([pattern])] == found


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1024):
        writer.write(data)
    writer.close()


async def test_the_proxy_cuts_after_exactly_the_bytes_it_is_told() -> None:
    """What was let through arrives, however it was split, and then the connection ends."""
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    async with server, proxy_to(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}") as proxy:
        proxy.set(down=Faults(cut_after=5, split=2))
        port = int(proxy.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"123456789")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)) as ended:
            await reader.readexactly(9)
        partial = getattr(ended.value, "partial", b"12345")
        assert partial == b"12345"
        writer.close()


def test_a_suite_takes_no_id_twice() -> None:
    """Two cases under one id could not be told apart in reports."""
    cases = suite()
    with pytest.raises(ValueError, match="is there already"):
        cases.add(next(case for case in cases if case.id == "one.fails"))


def test_a_failure_shows_no_more_than_a_page() -> None:
    """What is seen may be a long answer; a report stays readable."""
    assert len(Failed("x", seen="y" * 10_000).seen) < 3_000
