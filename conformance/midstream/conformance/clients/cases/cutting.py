"""Connections that end anywhere: at each border of frames, and inside them (SPEC 12, R2, R4)."""

from collections.abc import Sequence

from midstream.conformance.clients.cases.talks import DONE, OPEN, in_turn
from midstream.conformance.clients.conversation import Conversation
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.suite import SUITE
from midstream.protocol.frames import ServerFrame
from midstream.protocol.model import TextPart


def script() -> tuple[Conversation, Sequence[ServerFrame]]:
    """Return a session, opened at its first version, and the frames of what then happens."""
    talk = in_turn()
    new = talk.new_message("user", TextPart(text="and?"), turn_id="t2", place=1)
    frames: list[ServerFrame] = [
        talk.short("a text "),
        talk.put(DONE, OPEN),
        talk.append("in two parts ", part=1),
        talk.skip(2),
        talk.trim(2),
        talk.end_turn("t1"),
        talk.begin_turn("t2", new),
        talk.agent(OPEN, turn_id="t2"),
        talk.short("again"),
    ]
    return talk, frames


async def play(scene: Scene, number: int, at: int | None) -> None:
    """Send the first frames whole, and of the next one so many bytes; the cursor stands between them."""
    begin = in_turn()
    whole, frames = script()
    shown = Mirror(whole, begin.version)
    peer = await scene.open(shown)
    for frame in frames[:number]:
        await peer.send(frame)
        shown.reach(_version(frame))
    if at is None:
        await scene.heard(peer)  # what is cut at once may never have been read
        peer.drop()
    else:
        await peer.cut(frames[number], at)
    again = await scene.peer()
    call, asked = await scene.subscribed(again)
    scene.expect_cursor(whole, asked, shown.version)
    await scene.shown(whole)
    await scene.answer_sync(again, call, whole, mode="catchup" if number % 2 else None)
    await scene.reached(whole)
    await scene.goes_on(again, whole)
    await scene.tell("close")


class Mirror(Conversation):
    """A session as it was when only some of its versions had been told."""

    def __init__(self, whole: Conversation, version: int) -> None:
        """Show what the whole was at a version."""
        super().__init__(whole.session_id)
        self._past = whole._past  # noqa: SLF001 - the same session, seen earlier
        self.reach(version)

    def reach(self, version: int) -> None:
        """Show what the whole was at a later version."""
        self._now = self._past[version]


def _version(frame: ServerFrame) -> int:
    return int(getattr(frame, "version", 0))


@SUITE.case("cutting.between_frames", "12", "R2", "R4", seconds=60)
async def between_frames(scene: Scene) -> None:
    """Cut after any number of frames, the client comes back with the cursor of the last."""
    _, frames = script()
    for number in range(len(frames) + 1):
        await play(scene, number, None)


@SUITE.case("cutting.inside_frames", "12", "R2", seconds=60)
async def inside_frames(scene: Scene) -> None:
    """Of a frame that was cut at any byte nothing is applied."""
    for number in (0, 5, 6):
        for at in (1, 2, 3, 8, 20):
            await play(scene, number, at)
