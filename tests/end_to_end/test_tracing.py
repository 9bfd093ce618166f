"""Laws of tracing, over real sockets: what happened is in spans, each below what it belongs to."""

from __future__ import annotations

import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from midstream.protocol.calls import EmptyResult
from midstream.protocol.errors import UnknownMethod
from midstream.server import ConfigError, Server, Turn
from midstream.server.tracing import Tracing
from tests.end_to_end.stage import OpenStage

SECRET = "xyzzy-4711"  # noqa: S105 - a word to look for
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Keep the spans of every server of this test in memory."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


def named(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    """Return the finished spans of a name."""
    return [span for span in spans.get_finished_spans() if span.name == name]


async def test_a_turn_has_its_steps_and_what_its_agent_does_below_it(
    open_stage: OpenStage, spans: InMemorySpanExporter
) -> None:
    """Two steps, and a span that the agent began itself; the call, the load and the commits beside them."""
    stage = await open_stage(tracing=True)
    reader = await stage.reader()
    turn = await stage.turn(SECRET)
    for _ in range(2):
        async with turn.step() as step, step.text() as text:
            await text.append(SECRET)
    await stage.finish(turn, reader)
    await stage.stop()
    (turned,) = named(spans, "midstream.turn")
    steps = named(spans, "midstream.step")
    assert turned.context is not None
    assert [step.parent and step.parent.span_id for step in steps] == [turned.context.span_id] * 2
    expected = {"midstream.session_id": "s", "midstream.turn_id": turn.turn_id}
    assert dict(turned.attributes or {}) == expected | {"midstream.state": "completed"}
    assert all(dict(step.attributes or {}) == expected for step in steps)
    methods = [
        str(dict(call.attributes or {})["midstream.method"]) for call in named(spans, "midstream.call")
    ]
    assert sorted(methods) == ["prompt", "sessions.create", "subscribe"]
    assert len(named(spans, "midstream.load")) == 1
    assert named(spans, "midstream.commit")
    assert all(SECRET not in span.to_json() for span in spans.get_finished_spans())


async def test_an_agents_own_spans_are_below_its_turn(
    open_stage: OpenStage, spans: InMemorySpanExporter
) -> None:
    """So the calls of a provider's instrumented client are found where they belong."""
    stage = await open_stage(tracing=True)
    seen: list[trace.Span] = []

    async def agent(turn: Turn) -> None:
        del turn
        seen.append(trace.get_current_span())

    stage.agent = agent
    await stage.restart()
    reader = await stage.reader()
    await stage.prompt()
    await reader.line.until(lambda: bool(seen))
    await stage.stop()
    (turned,) = named(spans, "midstream.turn")
    assert turned.context is not None
    assert seen[0].get_span_context().span_id == turned.context.span_id


async def test_a_refused_call_has_its_code_and_a_strangers_method_no_name(
    open_stage: OpenStage, spans: InMemorySpanExporter
) -> None:
    """What somebody calls a method is a text like any other."""
    stage = await open_stage(tracing=True)
    with pytest.raises(UnknownMethod):
        await (await stage.user()).ask(EmptyResult, SECRET)
    call = named(spans, "midstream.call")[-1]
    assert dict(call.attributes or {}) == {"midstream.method": "other", "midstream.error": "unknown_method"}


def test_a_clients_trace_is_linked_to_and_a_bad_one_is_not() -> None:
    """W3C Trace Context, as it stands in the header."""
    (link,) = Tracing().links(f"00-{TRACE}-b7ad6b7169203331-01")
    assert f"{link.context.trace_id:032x}" == TRACE
    assert Tracing().links("00-nonsense") == []
    assert Tracing().links(None) == []


async def test_without_tracing_there_are_no_spans(open_stage: OpenStage, spans: InMemorySpanExporter) -> None:
    """By default."""
    stage = await open_stage()
    reader = await stage.reader()
    turn = await stage.turn()
    await stage.finish(turn, reader)
    await stage.stop()
    assert spans.get_finished_spans() == ()


async def test_without_the_package_the_error_says_what_to_install(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the start, where somebody looks."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    server = Server(database=f"{tmp_path}/chat.db", tracing=True)
    with pytest.raises(ConfigError, match=r"midstream\[tracing\]"):
        async with server.listen("127.0.0.1", 0):
            pass
