"""Servers that break what becomes of input, turns, questions and sessions (SPEC 8, 10)."""

from __future__ import annotations

from typing import Any, Final

from midstream.protocol.model import InteractionPart
from midstream.server.sessions import calls, draft, forks, interactions, reading, summaries, turns
from midstream.server.sessions.reading import Reading
from midstream.server.sessions.watch import Watch
from tests.conformance.mutants.mutant import mutant

NOTE: Final[Any] = Watch.note
END_TURN: Final[Any] = turns.end_turn


async def _no_such_input(*_: object) -> tuple[None, bool]:
    return None, False


def _any_answer_repeats(part: InteractionPart, *_: object, **__: object) -> bool:
    return part.status == "resolved"


def _stop_nothing(filled: Any, state: str, **options: Any) -> None:  # noqa: ANN401 - passed on
    if state != "stopped":
        END_TURN(filled, state, **options)


def _never(*_: object) -> bool:
    return False


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _tell_no_removals(watch: Watch, session: Any, *, removed: bool = False) -> None:  # noqa: ANN401 - passed on
    if not removed:
        NOTE(watch, session)


def _as_asked(_: object, part: Any) -> Any:  # noqa: ANN401 - passed on
    return part


def _whole_view(view: Any, segment: object) -> Any:  # noqa: ANN401 - passed on
    del segment
    return view


def _start_the_newest(filled: Any) -> None:  # noqa: ANN401 - passed on
    if filled.turn is None and filled.queue:
        turns.start_turn(filled, filled.queue[-1])


INPUT: Final = (
    mutant(
        "prompt-twice",
        "8.1",
        "a prompt that is repeated runs once (G3)",
        "prompts",
        (Reading, "input", _no_such_input),
    ),
    mutant(
        "conflict-unseen",
        "8.1",
        "an id with other content is a conflict",
        "prompts refusals",
        (turns, "check_repeated", _nothing),
    ),
    mutant(
        "queue-forgotten",
        "8.1",
        "what waits starts when the turn ends (G2)",
        "prompts stopping",
        (turns, "start_waiting", _nothing),
    ),
    mutant(
        "queue-backwards",
        "8.1",
        "what waits starts in order (G2)",
        "prompts",
        (turns, "start_waiting", _start_the_newest),
    ),
    mutant(
        "stop-without-effect", "8.5", "a stop ends the turn", "stopping", (turns, "end_turn", _stop_nothing)
    ),
    mutant(
        "streams-after-the-end",
        "8.4",
        "at its end a turn has no open part (G9)",
        "streaming",
        (turns, "close_streaming", _nothing),
    ),
    mutant(
        "open-after-the-end",
        "8.4",
        "at its end a turn has no open part (G9)",
        "streaming",
        (turns, "end_open_parts", _nothing),
    ),
    mutant(
        "respond-twice",
        "8.6",
        "an interaction has one outcome (G10)",
        "interactions",
        (interactions, "is_repeat", _any_answer_repeats),
    ),
    mutant(
        "archived-takes-input",
        "10.2",
        "an archived session takes no input",
        "sessions",
        (turns, "refuse_archived", _nothing),
    ),
    mutant(
        "clears-under-a-turn",
        "10.1",
        "a clear is refused while a turn runs",
        "sessions",
        (calls, "_refuse_running", _nothing),
    ),
    mutant("fork-left-open", "10.4", "a fork has no open part", "sessions", (forks, "is_open", _never)),
    mutant(
        "removal-untold",
        "4.8",
        "a watch tells what is removed (G31)",
        "watching",
        (Watch, "note", _tell_no_removals),
    ),
    mutant(
        "any-answer-fits",
        "8.6",
        "an answer that does not fit is refused",
        "interactions",
        (draft, "check_part", _nothing),
    ),
    mutant(
        "never-expires",
        "8.6",
        "a question expires in time",
        "interactions",
        (interactions, "expire", _nothing),
    ),
    mutant(
        "mode-gives-nothing",
        "8.8",
        "`always-allow` gives what is asked later",
        "interactions",
        (interactions, "_given", _as_asked),
    ),
    mutant(
        "summary-twice",
        "8.10",
        "a summary that is repeated is the one that is there",
        "summaries",
        (summaries, "repeated", _nothing),
    ),
    mutant(
        "segments-joined",
        "7.3",
        "a page never reaches beyond its segment",
        "summaries",
        (reading, "within", _whole_view),
    ),
)
"""Their names, rules, and where they are to be caught."""
