"""Taking WebSocket streams apart gives back every byte, frame by frame."""

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from tests.simulation.frames import DropFrames, FrameSplitter, WireFrame

HEAD = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"

payloads = st.one_of(
    st.binary(max_size=200),
    st.sampled_from([125, 126, 127, 65_535, 65_536, 70_000]).map(lambda size: b"x" * size),
)


@given(contents=st.lists(payloads, max_size=8), masked=st.booleans(), data=st.data())
def test_frames_are_found_however_the_stream_is_cut(
    *, contents: list[bytes], masked: bool, data: st.DataObject
) -> None:
    """Any cutting of a stream gives the same head and unmasked frames, and their raw bytes are the stream."""
    frames = [Frame(Opcode.BINARY, content).serialize(mask=masked) for content in contents]
    stream = HEAD + b"".join(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    splitter = FrameSplitter()
    head, found = b"", list[WireFrame]()
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        part, more = splitter.feed(stream[start:end])
        head += part
        found += more
    assert head == HEAD
    assert [frame.payload for frame in found] == contents
    assert [frame.raw for frame in found] == frames
    assert all((frame.opcode, frame.final) == (2, True) for frame in found)


def test_exactly_the_wanted_frames_are_removed_from_a_joined_write() -> None:
    """Of several frames in one write one is dropped, and then no more than were asked for."""
    a, b, c = (Frame(Opcode.BINARY, content).serialize(mask=False) for content in (b"a", b"b", b"c"))
    drop = DropFrames(lambda frame: frame.payload in b"bc", count=1)
    assert drop("up", b"untouched") == b"untouched"
    assert drop("down", HEAD + a) == HEAD + a
    assert drop("down", a + b + c[:2]) == a
    assert drop("down", c[2:] + b) == c + b
    assert [frame.payload for frame in drop.dropped] == [b"b"]
    assert drop.passed == 4
