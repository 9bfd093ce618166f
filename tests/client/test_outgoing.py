"""Long frames hold up nobody but their own session."""

from collections.abc import Iterator

from midstream.client.outgoing import Outgoing


def drained(outgoing: Outgoing) -> list[bytes]:
    """Take all messages."""
    messages: list[bytes] = []
    while (message := outgoing.take()) is not None:
        messages.append(message)
    return messages


def test_the_frames_of_a_session_keep_their_order() -> None:
    """No frame of a session passes an earlier one, however many messages that has."""
    outgoing = Outgoing()
    outgoing.add("s", iter([b"1a", b"1b", b"1c"]))
    outgoing.add("s", iter([b"2"]))
    assert drained(outgoing) == [b"1a", b"1b", b"1c", b"2"]
    assert outgoing.take() is None


def test_other_sessions_and_pings_pass_between_the_chunks() -> None:
    """One message of each session in turn, and what is urgent before all."""
    outgoing = Outgoing()
    outgoing.add("long", iter([b"1", b"2", b"3"]))
    outgoing.add("short", iter([b"x"]))
    assert outgoing.take() == b"1"
    outgoing.urgent(b"ping")
    assert drained(outgoing) == [b"ping", b"x", b"2", b"3"]


def test_a_frame_is_made_only_when_its_turn_comes() -> None:
    """Chunks are cut one by one, so that a long frame is not in memory twice."""
    made: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        for piece in (b"a", b"b"):
            made.append(piece)
            yield piece

    outgoing = Outgoing()
    outgoing.add(None, pieces())
    assert made == []
    outgoing.take()
    assert made == [b"a"]
