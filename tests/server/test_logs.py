"""Laws of the logs: named fields, one form for all, and nothing of what people say."""

import io
import json
import logging
from collections.abc import Generator

import pytest
import structlog

from midstream.server.config import LogLevel
from midstream.server.logs import configure, configure_unless_done


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.fixture(autouse=True)
def restored() -> Generator[None]:
    """Leave logging as it was."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    libraries = {name: logging.getLogger(name).level for name in ("websockets", "asyncio")}
    yield
    root.handlers[:], root.level = before
    for name, level in libraries.items():
        logging.getLogger(name).setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    """Return what was logged as JSON."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_its_fields_and_those_of_its_context() -> None:
    """What was bound around it stands in it, beside level, time and logger."""
    stream = io.StringIO()
    configure("json", stream=stream)
    with structlog.contextvars.bound_contextvars(connection_id="connection_1"):
        structlog.stdlib.get_logger("midstream.test").info("opened", peers=3)
    (line,) = lines(stream)
    assert line.pop("timestamp")
    assert line == {
        "event": "opened",
        "peers": 3,
        "connection_id": "connection_1",
        "level": "info",
        "logger": "midstream.test",
    }


def test_lines_of_libraries_have_the_same_form_and_the_same_context() -> None:
    """What websockets says of a connection can be found by that connection's id."""
    stream = io.StringIO()
    configure("json", stream=stream)
    with structlog.contextvars.bound_contextvars(connection_id="connection_1"):
        logging.getLogger("websockets.server").warning("lost %s", "it")
    (line,) = lines(stream)
    assert line["event"] == "lost it"
    assert line["connection_id"] == "connection_1"
    assert line["level"] == "warning"


@pytest.mark.parametrize("level", ["debug", "info"])
def test_libraries_never_log_frames(level: LogLevel) -> None:
    """At debug websockets would write whole frames, with what people say."""
    stream = io.StringIO()
    configure("json", level, stream=stream)
    logging.getLogger("websockets.server").debug("< TEXT 'my secret'")
    logging.getLogger("websockets.server").info("connection open")
    assert stream.getvalue() == ""


def test_lower_levels_are_not_logged() -> None:
    """At warning, info is silent, for our lines and for others'."""
    stream = io.StringIO()
    configure("json", "warning", stream=stream)
    structlog.stdlib.get_logger("midstream.test").info("quiet")
    logging.getLogger("other").info("quiet")
    structlog.stdlib.get_logger("midstream.test").warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_names_the_error_and_shows_no_local_variables(form: str) -> None:
    """Locals would hold messages and tokens."""
    stream = io.StringIO()
    configure("json" if form == "json" else "console", stream=stream)
    try:
        _fail("what", "the user said")
    except ValueError:
        structlog.stdlib.get_logger("midstream.test").exception("failed")
    written = stream.getvalue()
    assert "ValueError" in written
    assert "_fail" in written
    assert "what the user said" not in written


def test_auto_is_console_on_a_terminal_and_json_elsewhere() -> None:
    """People and machines get what they read best."""
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        configure("auto", stream=stream)
        structlog.stdlib.get_logger("midstream.test").info("opened")
    assert lines(pipe)[0]["event"] == "opened"
    with pytest.raises(json.JSONDecodeError):
        lines(terminal)
    assert "opened" in terminal.getvalue()


def test_configuring_again_replaces_what_was() -> None:
    """A line is written once, to the newest stream."""
    old, new = io.StringIO(), io.StringIO()
    configure("json", stream=old)
    logger = structlog.stdlib.get_logger("midstream.test")
    logger.info("first")
    configure("json", stream=new)
    logger.info("second")
    assert [line["event"] for line in lines(old)] == ["first"]
    assert [line["event"] for line in lines(new)] == ["second"]


def _fail(*words: str) -> None:
    said = " ".join(words)
    if said:
        raise ValueError("it failed")


def test_a_program_without_logging_gets_that_of_the_settings() -> None:
    """Structlog's own default would write every level, and draw local variables."""
    logging.getLogger().handlers.clear()
    stream = io.StringIO()
    configure_unless_done("json", "warning", stream=stream)
    structlog.stdlib.get_logger("midstream.test").info("quiet")
    structlog.stdlib.get_logger("midstream.test").warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


@pytest.mark.parametrize("done_by", ["structlog", "logging"])
def test_a_program_that_has_set_up_its_logging_keeps_it(done_by: str) -> None:
    """A server in a larger program is a guest there."""
    root = logging.getLogger()
    root.handlers.clear()
    if done_by == "structlog":
        structlog.configure(processors=[structlog.processors.JSONRenderer()])
    else:
        root.addHandler(logging.NullHandler())
    before = root.handlers[:], structlog.get_config()
    configure_unless_done("json", "warning", stream=io.StringIO())
    assert (root.handlers[:], structlog.get_config()) == before
