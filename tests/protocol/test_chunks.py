"""Laws of chunks: what is cut is joined again, whatever comes between; vectors hold single cases."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.protocol.chunks import ChunkAssembler, chunks
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.errors import InvalidRequest
from midstream.protocol.frames import Chunk

codecs = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=lambda codec: codec.name)
long_texts = st.text(st.sampled_from('a"\\éĀ😀\x00\n'), min_size=1, max_size=400)


def read(codec: Codec, data: bytes) -> Chunk:
    """A chunk frame, decoded."""
    chunk = codec.decode_server_frame(data)
    assert isinstance(chunk, Chunk)
    return chunk


@codecs
@given(
    texts=st.lists(long_texts, min_size=1, max_size=4), size=st.integers(64, 300), seed=st.integers(0, 999)
)
def test_frames_are_cut_to_size_and_joined_again_in_the_place_of_their_last_piece(
    codec: Codec, texts: list[str], size: int, seed: int
) -> None:
    """Pieces of several frames come mixed; each chunk is at most as long as allowed."""
    frames = [codec.encode(["signal", 1, "s", "n", text]) for text in texts]
    waiting = {n: list(chunks(frame, n=n, chunk_bytes=size, codec=codec)) for n, frame in enumerate(frames)}
    assert all(len(piece) <= size for pieces in waiting.values() for piece in pieces)
    assembler, chance, joined = ChunkAssembler(10**6, codec), random.Random(seed), list[bytes]()
    begun = 0
    while waiting:
        begun = max(begun, min(waiting, default=0))
        n = chance.choice([one for one in waiting if one <= begun])  # a frame begins after those before it
        begun = max(begun, n + 1)
        whole = assembler.feed(read(codec, waiting[n].pop(0)))
        if not waiting[n]:
            del waiting[n]
            joined.append(whole or b"")
        else:
            assert whole is None
    assert sorted(joined) == sorted(frames)


@codecs
def test_chunks_are_made_one_by_one(codec: Codec) -> None:
    """A sender that is slow holds no second copy of a long frame."""
    made = chunks(codec.encode("x" * 10**6), n=0, chunk_bytes=65_536, codec=codec)
    first = read(codec, next(made))
    assert not first.last
    assert len(first.piece) > 30_000


@given(text=long_texts, cuts=st.lists(st.integers(0, 3_000), max_size=5))
def test_text_cut_anywhere_between_utf16_units_is_joined(text: str, cuts: list[int]) -> None:
    """As a sender in JavaScript may cut it."""
    frame = JSON.encode(["x", text])
    units = frame.decode().encode("utf-16-le", "surrogatepass")
    places = sorted({0, len(units), *(2 * (cut % (len(units) // 2)) for cut in cuts)})
    pieces = [units[a:b].decode("utf-16-le", "surrogatepass") for a, b in pairwise(places)]
    assembler = ChunkAssembler(10**6, JSON)
    whole = [assembler.feed(Chunk(1, i == len(pieces) - 1, piece)) for i, piece in enumerate(pieces)]
    assert whole == [None] * (len(pieces) - 1) + [frame]


@codecs
def test_a_sender_that_only_begins_frames_is_bounded(codec: Codec) -> None:
    """Memory stays at the limit: one open frame more than is sensible is refused."""
    assembler = ChunkAssembler(10**6, codec)

    def feed(n: int, *, last: bool) -> bytes | None:
        return assembler.feed(Chunk(n, last, b"x" if codec.binary else "x"))

    for n in range(1_024):
        assert feed(n, last=False) is None
    with pytest.raises(InvalidRequest, match="in pieces at once"):
        feed(1_024, last=False)
    assert feed(1_024, last=True) is None
    assert feed(0, last=True) == b"xx"
    assert feed(1_025, last=True) == b"x"
