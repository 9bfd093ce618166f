"""An attachment, case by case: what it refuses, what it answers, what it keeps."""

from __future__ import annotations

import pytest
from msgspec import UNSET, structs

from midstream.protocol.agents import (
    AbsorbInputs,
    AddPart,
    Ask,
    BeginStep,
    EndStep,
    EndText,
    MoveTool,
    ReportError,
    Write,
    WriteResult,
)
from midstream.protocol.codec import MSGPACK
from midstream.protocol.errors import IllegalTransition, InvalidRequest, LimitExceeded
from midstream.protocol.frames import (
    Ack,
    Answered,
    Append,
    Detached,
    PartHandle,
    WriteFrame,
    WriteRefused,
    Wrote,
)
from midstream.protocol.limits import Limits
from midstream.protocol.model import DataPart, InteractionPart, InteractionRequest, TextPart
from midstream.worker.attachment import PIECE_CHARS, AttachAgain, Attachment, Heard, Over, Settled
from tests.worker.oracle import PROMPT
from tests.worker.peer import ATTACHED, again

ERROR = IllegalTransition("part", "p", "gone", "open")
ASKED = InteractionPart(
    part_id="p",
    sequence=1,
    interaction_id="i",
    interaction_type="approval",
    status="resolved",
    request=InteractionRequest(title="May I?"),
)


def attachment(limits: Limits | None = None) -> Attachment:
    """Return one that is attached."""
    made = Attachment(MSGPACK, "s", "t", limits=limits or Limits())
    assert made.attached(ATTACHED) == []
    return made


def frames(made: Attachment) -> list[object]:
    """Return all that goes out now."""
    taken: list[object] = []
    while (payload := made.take()) is not None:
        taken.append(MSGPACK.decode_client_frame(payload))
    return taken


def test_a_part_is_named_once_before_its_first_delta() -> None:
    """And again after attaching anew, when all handles are gone."""
    made = attachment()
    for part_id in ("a", "b", "a"):
        made.append(part_id, "x")
    assert frames(made) == [
        PartHandle(1, 0, "a"),
        Append(1, 1, 0, "x"),
        PartHandle(1, 1, "b"),
        Append(1, 2, 1, "x"),
        Append(1, 3, 0, "x"),
    ]
    made.lost()
    made.attached(again(ATTACHED, channel=2, next_n=2, durable_n=1))
    assert frames(made) == [
        PartHandle(2, 0, "b"),
        Append(2, 2, 0, "x"),
        PartHandle(2, 1, "a"),
        Append(2, 3, 1, "x"),
    ]


def test_handles_are_given_again_when_they_run_out() -> None:
    """An attachment may have as many as a message may have parts."""
    made = attachment(Limits(parts=2))
    for part_id in ("a", "b", "c", "a", "c"):
        made.append(part_id, "x")
    handles = [frame for frame in frames(made) if isinstance(frame, PartHandle)]
    assert handles == [
        PartHandle(1, 0, "a"),
        PartHandle(1, 1, "b"),
        PartHandle(1, 0, "c"),
        PartHandle(1, 1, "a"),
    ]


def test_what_is_appended_in_one_tick_goes_as_one_and_long_text_in_pieces() -> None:
    """How text is cut is free; its order is not."""
    made = attachment()
    for text in ("one ", "two ", "x" * (PIECE_CHARS + 1), "\U0001f600"):
        made.append("a", text)
    texts = [frame.text for frame in frames(made) if isinstance(frame, Append)]
    assert "".join(texts) == "one two " + "x" * (PIECE_CHARS + 1) + "\U0001f600"
    assert [len(text) <= PIECE_CHARS for text in texts] == [True, True, True]


@pytest.mark.parametrize(
    ("write", "error", "said"),
    [
        (AddPart(part=DataPart(part_id="p", data_type="d", data=2**64)), InvalidRequest, "part.data"),
        (AddPart(part=DataPart(part_id="p", data_type="\ud800", data=1)), InvalidRequest, "part.data_type"),
        (EndText(part_id="x" * 200), InvalidRequest, "part_id"),
        (MoveTool(part_id="p", state="gone"), InvalidRequest, "state"),  # type: ignore[arg-type]  # it is refused
        (ReportError(code="c", message="x" * 3_000), LimitExceeded, "agent_frame_bytes"),
    ],
)
def test_what_no_server_would_take_gets_no_number(write: Write, error: type[Exception], said: str) -> None:
    """It is refused where it is written, and the next write has its number."""
    made = attachment(Limits(agent_frame_bytes=3_000))
    with pytest.raises(error, match=said):
        made.write(write)
    assert made.write(BeginStep()) == 1
    assert frames(made) == [WriteFrame(1, 1, BeginStep())]


def test_a_write_longer_than_the_window_goes_alone() -> None:
    """When nothing else is on its way, and nothing before it is acknowledged."""
    made = attachment()
    long = ReportError(code="c", message="x" * 2 * ATTACHED.window_bytes)
    for write in (BeginStep(), long, BeginStep()):
        made.write(write)
    assert frames(made) == [WriteFrame(1, 1, BeginStep())]
    assert not made.has_room
    made.frame(Ack(1, 1, 0))
    assert frames(made) == [WriteFrame(1, 2, long)]
    made.frame(Ack(1, 2, 2))
    assert frames(made) == [WriteFrame(1, 3, BeginStep())]
    assert made.has_room


def test_a_stored_write_is_settled_by_its_answer_or_by_its_ack() -> None:
    """Once."""
    made = attachment()
    for write in (AbsorbInputs(), EndStep(step_id="s"), EndStep(step_id="s")):
        made.write(write)
    result = WriteResult(messages=[PROMPT])
    assert made.frame(Wrote(1, 1, result)) == [Settled(1, result)]
    [refused] = made.frame(WriteRefused(1, 2, ERROR.info()))
    assert isinstance(refused, Settled)
    assert isinstance(refused.result, IllegalTransition)
    assert made.frame(Ack(1, 3, 3)) == [Settled(3, WriteResult())]
    assert made.frame(Ack(1, 3, 3)) == []


def test_an_answer_that_was_lost_comes_with_the_next_attach() -> None:
    """Of a write that the server took."""
    made = attachment()
    for write in (
        AbsorbInputs(),
        MoveTool(part_id="p", state="running"),
        EndStep(step_id="s"),
        EndStep(step_id="t"),
    ):
        made.write(write)
    frames(made)
    made.lost()
    result = WriteResult(messages=[PROMPT])
    attached = structs.replace(
        again(ATTACHED, next_n=4, durable_n=3), results=[(1, result)], refused=[(2, ERROR.info())]
    )
    one, two, three = made.attached(attached)
    assert one == Settled(1, result)
    assert isinstance(two, Settled)
    assert isinstance(two.result, IllegalTransition)
    assert three == Settled(3, WriteResult())
    assert frames(made) == [WriteFrame(1, 4, EndStep(step_id="t"))]


def test_a_refusal_that_nobody_waits_for_is_told_once() -> None:
    """Also where the write is sent again, and refused again."""
    made = attachment()
    made.append("gone", "x")
    frames(made)
    assert made.frame(WriteRefused(1, 1, ERROR.info())) == []
    assert isinstance(made.refusal, IllegalTransition)
    made.refusal = None
    made.lost()
    made.attached(structs.replace(again(ATTACHED), refused=[(1, ERROR.info())]))
    made.frame(WriteRefused(1, 1, ERROR.info()))
    assert made.refusal is None


def test_a_refusal_is_told_once_though_every_attach_says_it() -> None:
    """Also where its write is on disk by then; found by the property test."""
    made = attachment()
    made.append("gone", "x")
    frames(made)
    made.frame(WriteRefused(1, 1, ERROR.info()))
    made.refusal = None
    for _ in range(2):
        made.lost()
        made.attached(structs.replace(again(ATTACHED, next_n=2, durable_n=1), refused=[(1, ERROR.info())]))
        assert made.refusal is None


def test_what_another_process_was_refused_is_not_told_to_this_one() -> None:
    """The answers of the writes before are not its own."""
    made = Attachment(MSGPACK, "s", "t")
    refused = [(3, ERROR.info()), (4, ERROR.info())]
    assert made.attached(structs.replace(ATTACHED, next_n=5, durable_n=4, refused=refused)) == []
    assert made.refusal is None
    made.append("gone", "x")
    frames(made)
    made.frame(WriteRefused(1, 5, ERROR.info()))
    assert isinstance(made.refusal, IllegalTransition)


def test_the_outcome_of_a_question_is_heard_whenever_it_comes() -> None:
    """Before anybody waits for it, while somebody does, or with an attach; a pending one is none."""
    made = attachment()
    pending = structs.replace(ASKED, status="pending")
    assert made.frame(Answered(1, ASKED)) == []
    assert made.await_outcome("i") == ASKED
    assert made.await_outcome("j") is None
    assert made.params().waiting == ["j"]
    other = structs.replace(ASKED, interaction_id="j")
    assert made.frame(Answered(1, other)) == [Heard(other)]
    assert made.await_outcome("k") is None
    made.lost()
    third = structs.replace(ASKED, interaction_id="k")
    attached = structs.replace(again(ATTACHED), interactions=[pending, third])
    assert made.attached(attached) == [Heard(third)]
    made.await_outcome("l")
    made.forget_outcome("l")
    assert made.params().waiting == []


def test_a_question_is_written_and_waited_for() -> None:
    """It is settled by its ack, and heard when it is answered."""
    made = attachment()
    question = Ask(interaction_id="i", interaction_type="approval", request=ASKED.request)
    n = made.write(question)
    made.await_outcome("i")
    assert made.frame(Ack(1, n, n)) == [Settled(n, WriteResult())]
    assert made.frame(Answered(1, ASKED)) == [Heard(ASKED)]


@pytest.mark.parametrize(
    ("code", "event"),
    [
        ("ended", Over("ended")),
        ("fenced", Over("fenced")),
        ("gap", AttachAgain("gap")),
        ("new", AttachAgain("new")),
    ],
)
def test_an_attachment_that_is_over_says_whether_the_turn_is(code: str, event: object) -> None:
    """And sends nothing more."""
    made = attachment()
    made.write(BeginStep())
    assert made.frame(Detached(1, code)) == [event]
    assert made.take() is None
    assert made.params().generation == 1


@pytest.mark.parametrize("next_n", [3, 7])
def test_a_turn_that_is_not_as_it_was_written_is_lost(next_n: int) -> None:
    """The server asks for what another process wrote, or has more than was written."""
    made = Attachment(MSGPACK, "s", "t")
    assert made.params().generation is UNSET
    made.attached(structs.replace(ATTACHED, next_n=5, durable_n=4))
    made.write(AddPart(part=TextPart(part_id="p", text="", state="streaming")))
    made.lost()
    assert made.attached(again(ATTACHED, next_n=next_n)) == [Over("lost")]


def test_all_that_was_written_can_be_waited_for() -> None:
    """Text that waits included; where nothing is out, there is nothing to wait for."""
    made = attachment()
    assert made.await_all() is None
    made.append("a", "x")
    n = made.await_all()
    assert n == 1
    frames(made)
    assert made.frame(Ack(1, 1, 0)) == [Settled(1, WriteResult())]
    assert made.await_all() is None
    assert made.kept_bytes > 0
    made.frame(Ack(1, 1, 1))
    assert made.kept_bytes == 0
