"""Laws of the outbox: order, fairness between sessions, whole chunks, and a bound in bytes."""

import tracemalloc
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.frames import Ping
from midstream.server.connections.backlog import Backlog
from midstream.server.connections.outbox import CONTROL_BYTES, Outbox
from tests.server.connections.readers import Frame, joined, nothing, outbox_of, plain

CHUNK = 256
MARK = 2_000

both_codecs = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])


def small(codec: Codec = MSGPACK) -> Outbox:
    """Return an outbox that is soon full."""
    return outbox_of(codec, chunk=CHUNK, mark=MARK)


def tag(message: bytes) -> object:
    """Return the tag of a frame in msgpack."""
    return plain(MSGPACK, message)[0]


operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), st.integers(0, 4 * CHUNK)),
        st.tuples(st.just("control"), st.just(""), st.integers(0, 2**32)),
        st.tuples(st.just("take"), st.just(""), st.integers(1, 3 * CHUNK)),
    ),
    max_size=60,
)


@given(operations=operations, codec=st.sampled_from([MSGPACK, JSON]), text=st.sampled_from(['x"', "é", "𝄞"]))
def test_every_frame_of_a_lane_comes_out_whole_and_in_order(
    operations: list[tuple[str, str, int]], codec: Codec, text: str
) -> None:
    """However puts and takes alternate, each lane is the list of what was put into it."""
    outbox = small(codec)
    expected: dict[object, list[Frame]] = defaultdict(list)
    messages: list[bytes] = []
    for kind, lane, number in operations:
        if kind == "put":
            frame: Frame = [lane, len(expected[lane]), text * (number // len(text.encode()))]
            expected[lane].append(frame)
            outbox.put(lane, codec.encode(frame))
        elif kind == "control":
            expected["ping"].append(["ping", number])
            outbox.put_control(Ping(number))
        else:
            messages += outbox.take(number)
    messages += outbox.take(10**9)

    seen: dict[object, list[Frame]] = defaultdict(list)
    for data in joined(codec, messages):
        frame = plain(codec, data)
        seen[frame[0]].append(frame)
    assert seen == {lane: frames for lane, frames in expected.items() if frames}
    assert outbox.size == 0


@given(operations=operations)
def test_what_is_admitted_is_never_more_than_mark_longest_frame_and_one_chunk(
    operations: list[tuple[str, str, int]],
) -> None:
    """A sender that asks `admits` first keeps the outbox within its bound."""
    outbox = small()
    longest = 0
    for kind, lane, number in operations * 3:
        if kind == "put":
            payload = MSGPACK.encode([lane, 0, "x" * number * 3])
            if outbox.admits(len(payload)):
                outbox.put(lane, payload)
                longest = max(longest, len(payload))
        elif kind == "take" and number % 3 == 0:
            outbox.take(number)
        assert outbox.size <= MARK + longest + CHUNK


@both_codecs
def test_between_the_chunks_of_a_frame_stand_frames_of_other_lanes_and_none_of_its_own(codec: Codec) -> None:
    """A long frame of a session is not interrupted by its own session, but by others and by pings."""
    outbox = small(codec)
    outbox.put("a", codec.encode(["a", 0, "x" * 20 * CHUNK]))
    outbox.put("a", codec.encode(["a", 1, ""]))
    outbox.put("b", codec.encode(["b", 0, ""]))
    order: list[object] = []
    while taken := outbox.take(1):
        order.append(plain(codec, taken[0])[0])
        if len(order) == 5:
            outbox.put_control(Ping(1))
            outbox.put("b", codec.encode(["b", 1, ""]))
    first, last = order.index("chunk"), len(order) - 1 - order[::-1].index("chunk")
    assert order[first : last + 1].count("b") == 2
    assert order[first : last + 1].count("ping") == 1
    assert "a" not in order[: last + 1]
    assert order[last + 1 :] == ["a"]


def test_a_short_frame_waits_for_one_turn_of_each_other_lane_at_most() -> None:
    """With 5 MB of session A waiting, a delta of session B goes out after one chunk."""
    outbox = outbox_of(chunk=64 * 1024, mark=1024 * 1024)
    outbox.put("a", MSGPACK.encode(["a", "x" * 5_000_000]))
    outbox.take(1)
    outbox.put("b", MSGPACK.encode(["b"]))
    waited = 0
    while tag(message := outbox.take(1)[0]) != "b":
        waited += len(message)
    assert waited <= 64 * 1024


def test_lanes_share_alike() -> None:
    """Of three sessions that have the same to send, none is ahead by more than one turn."""
    outbox = outbox_of(chunk=CHUNK, mark=10**9)
    for number in range(3_000):
        outbox.put("abc"[number % 3], MSGPACK.encode(["abc"[number % 3], "x" * (number % 50)]))
    sent: dict[object, int] = defaultdict(int)
    while outbox.size > 20_000:
        (message,) = outbox.take(1)
        sent[tag(message)] += len(message)
        assert max(sent.values()) - min(sent[lane] for lane in "abc") <= 2 * CHUNK


def test_the_control_lane_passes_first() -> None:
    """A pong does not wait for what waits already."""
    outbox = small()
    for number in range(10):
        outbox.put("a", MSGPACK.encode(["a", number]))
    outbox.put_control(Ping(7))
    assert plain(MSGPACK, outbox.take(1)[0]) == ["ping", 7]


def test_short_frames_pass_while_one_long_frame_is_on_its_way() -> None:
    """A frame above the mark does not make other sessions fall behind; a second long one has to wait."""
    outbox = small()
    outbox.put("a", MSGPACK.encode(["a", "x" * 10 * MARK]))
    assert outbox.size > MARK
    assert outbox.admits(CHUNK)
    assert not outbox.above_mark
    assert not outbox.admits(CHUNK + 1)
    while outbox.admits(100):
        outbox.put("b", b"x" * 100)
    assert outbox.above_mark
    assert outbox.size <= 10 * MARK + MARK + 2 * CHUNK


def test_a_long_frame_counts_whole_until_its_last_chunk_is_taken() -> None:
    """`size` is what is held in memory, and a long frame is held whole."""
    outbox = small()
    payload = MSGPACK.encode(["a", "x" * 10 * CHUNK])
    outbox.put("a", payload)
    while not plain(MSGPACK, (message := outbox.take(1)[0]))[2]:
        assert outbox.size == len(payload)
    assert message
    assert outbox.size == 0


def test_a_long_frame_is_held_once_and_not_copied() -> None:
    """Putting 5 MB costs no second 5 MB, and neither does taking the first chunk."""
    outbox = outbox_of(chunk=64 * 1024, mark=1024 * 1024)
    payload = MSGPACK.encode(["a", "x" * 5_000_000])
    tracemalloc.start()
    try:
        outbox.put("a", payload)
        (chunk,) = outbox.take(1)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(chunk) > 60_000
    assert held < 300_000


def test_a_sealed_message_goes_out_as_the_same_object() -> None:
    """What is shared by a thousand connections is one bytes object."""
    outbox = small()
    message = b"x" * 100
    outbox.put_sealed("a", message)
    (taken,) = outbox.take(1)
    assert taken is message


def test_it_wakes_its_reader_once_for_each_take() -> None:
    """However much enters, `wake` is called again only after something was taken."""
    calls: list[int] = []
    outbox = Outbox(
        MSGPACK,
        seal=lambda payload: payload,
        wake=lambda: calls.append(1),
        spill=nothing,
        chunk_bytes=CHUNK,
        backlog=Backlog(CHUNK, CHUNK),
    )
    for _ in range(3):
        outbox.put("a", b"frame")
        outbox.put_control(Ping(1))
    assert len(calls) == 1
    outbox.take(1)
    outbox.put("a", b"frame")
    assert len(calls) == 2


def test_a_flooded_control_lane_is_noticed() -> None:
    """Pongs that are not read do not wait without end."""
    outbox = small()
    count = 0
    while not outbox.control_full:
        outbox.put_control(Ping(2**40))
        count += 1
    assert outbox.size > CONTROL_BYTES
    outbox.take(10**9)
    assert not outbox.control_full


def test_long_frames_are_numbered_in_the_order_in_which_they_start() -> None:
    """One that waits in its lane while another lane's starts gets the higher number (it was lost once)."""
    outbox = small()
    frames: list[Frame] = [["a", 0, "x" * 2 * CHUNK], ["a", 1, "x" * 2 * CHUNK], ["b", 0, "x" * 2 * CHUNK]]
    for frame in frames:
        outbox.put(frame[0], MSGPACK.encode(frame))
    whole = [plain(MSGPACK, data) for data in joined(MSGPACK, outbox.take(10**9))]
    assert sorted(map(str, whole)) == sorted(map(str, frames))
