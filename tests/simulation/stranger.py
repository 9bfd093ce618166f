"""A visitor whose client was written from SPEC.md alone: JSON, one reader, no comfort.

It keeps its replicas on a disk now and then, and starts from there after it was killed. It may ask for a
session twice at once, and leaves and comes back with its cursor.
"""

import asyncio

from msgspec import UNSET

from midstream.client import AlreadyExists, NotFound, Refused, SessionClosed
from midstream.protocol import calls
from midstream.protocol.digest import message_digest
from midstream.protocol.frames import (
    Change,
    Closed,
    Delta,
    ErrorFrame,
    Mark,
    ServerFrame,
    ShortDelta,
    Skip,
    Sync,
)
from midstream.protocol.merge import SavedReplica
from midstream.protocol.model import InteractionPart, InteractionResponse, TextPart
from midstream.protocol.outcomes import Gap
from tests.simulation.knobs import Wish
from tests.simulation.plainlink import Answer, PlainLink
from tests.simulation.visitor import Chore, Scene, Visitor
from tests.simulation.witness import WatchedReplica

MINUTE = 60.0


class Reading:
    """One session that it follows, or followed.

    Attributes:
        replica: what it has.
        channel: where its frames come from; none from sending `subscribe` until its answer.
        asked: counts `subscribe`s, so that only the answer to the last one counts.
        gap_at: when there was a gap last.
        wanted: whether it is to be followed.
    """

    def __init__(self, replica: WatchedReplica) -> None:
        self.replica = replica
        self.channel: int | None = None
        self.asked = 0
        self.gap_at: float | None = None
        self.wanted = False


class Stranger(Visitor):
    """Speaks the protocol by itself."""

    def __init__(self, scene: Scene, name: str, wish: Wish) -> None:
        super().__init__(scene, name, wish)
        self._disk: dict[str, SavedReplica] = {}
        self._readings: dict[str, Reading] = {}
        self._link = self._new_link()
        self._life: asyncio.Task[None] | None = None

    def is_live(self, session_id: str) -> bool:
        """Say whether frames of the session come."""
        reading = self._readings.get(session_id)
        return reading is not None and reading.channel is not None

    # Connection

    def _begin(self) -> None:
        self._link = self._new_link()
        self._readings = {
            session_id: Reading(self._scene.witness.restored(saved))
            for session_id, saved in self._disk.items()
            if session_id in self.entered
        }
        self._life = self._scene.loop.create_task(self._link.live(), name=f"{self.name} connects")

    def _new_link(self) -> PlainLink:
        knobs = self._scene.knobs
        heartbeat = knobs.heartbeat_ms / 1000
        return PlainLink(self, self._rng, heartbeat=heartbeat, chunk_bytes=knobs.chunk_bytes)

    async def _close(self) -> None:
        if self._life is not None:
            self._life.cancel()
            await asyncio.wait([self._life])

    def welcomed(self) -> None:
        """Subscribe to all that is followed."""
        for session_id in list(self.entered):
            self._subscribe(session_id)

    def lost(self, why: str) -> None:
        """Follow nothing until there is a connection again."""
        self.note(f"is offline: {why}")
        for reading in self._readings.values():
            reading.channel = None
            reading.asked += 1

    def took(self, frame: ServerFrame) -> None:
        """Apply a frame of a session."""
        if isinstance(frame, (ShortDelta, Delta, Change, Skip, Sync, Mark)):
            reading = self._reading_of(frame.channel)
            if reading is not None:
                self._judge(reading, reading.replica.apply(frame))
        elif isinstance(frame, Closed):
            reading = self._reading_of(frame.channel)
            if reading is not None:
                reading.channel = None
                if frame.retryable:
                    self._subscribe(reading.replica.session_id)
                else:
                    self.entered.pop(reading.replica.session_id, None)
        elif isinstance(frame, ErrorFrame):
            self._scene.diary.complain(f"{self.name}: a frame was refused: {frame}")

    def _reading_of(self, channel: int) -> Reading | None:
        return next((one for one in self._readings.values() if one.channel == channel), None)

    # Subscribing

    def _subscribe(self, session_id: str, *, whole: bool = False) -> None:
        reading = self._readings.get(session_id)
        if reading is None:
            replica = self._scene.witness.replica(session_id, include_internal=self.wish.include_internal)
            reading = self._readings[session_id] = Reading(replica)
        if not self._link.online.is_set():
            return
        reading.channel = None
        reading.asked += 1
        asked = reading.asked
        cursor = None if whole else reading.replica.cursor()
        params = calls.SubscribeParams(
            session_id=session_id,
            cursor=UNSET if cursor is None else cursor,
            limit=self.wish.limit,
            include_internal=self.wish.include_internal,
            pace_ms=self.wish.pace_ms or UNSET,
        )
        self._link.call("subscribe", params, lambda answer: self._subscribed(reading, asked, answer))

    def _subscribed(self, reading: Reading, asked: int, answer: Answer) -> None:
        session_id = reading.replica.session_id
        if asked != reading.asked or session_id not in self.entered:
            return
        if isinstance(answer, calls.SubscribeResult):
            reading.channel = answer.channel
            self._judge(reading, reading.replica.apply_sync(answer.sync))
        elif isinstance(answer, NotFound) and self._scene.oracle.session(session_id).fork_of is None:
            params = calls.CreateParams(session_id=session_id, key=f"{self.name} {session_id}")
            self._link.call("sessions.create", params, lambda answer: self._created(session_id, answer))
        elif answer is not None:
            self._later(session_id)

    def _created(self, session_id: str, answer: Answer) -> None:
        if isinstance(answer, AlreadyExists) and self._scene.oracle.session(session_id).deleted:
            self.entered.pop(session_id, None)
        elif session_id in self.entered:
            self._subscribe(session_id)

    def _later(self, session_id: str) -> None:
        connection = self._link.connections

        def again() -> None:
            if self._link.connections == connection and session_id in self.entered:
                self._subscribe(session_id)

        self._scene.loop.call_later(0.5, again)

    def _judge(self, reading: Reading, outcome: object) -> None:
        """Do what the law says after a frame; now and then, save."""
        if not isinstance(outcome, Gap):
            if self._rng.random() < 0.1 and (saved := reading.replica.save()) is not None:
                self._disk[reading.replica.session_id] = saved
            return
        now = self._scene.loop.time()
        second = reading.gap_at is not None and now - reading.gap_at < MINUTE
        reading.gap_at = now
        self._subscribe(reading.replica.session_id, whole=second or not outcome.keep_cursor)

    # What it does

    def _is_in(self, session_id: str) -> bool:
        reading = self._readings.get(session_id)
        return reading is not None and reading.wanted

    async def _enter(self, session_id: str) -> None:
        self._subscribe(session_id)
        self._readings[session_id].wanted = True
        if self._rng.random() < 0.2:
            self._subscribe(session_id)  # twice in flight: the last one counts

    async def _leave(self, session_id: str) -> None:
        reading = self._readings.get(session_id)
        if reading is not None:
            reading.channel = None
            reading.asked += 1
            reading.wanted = False
            params = calls.UnsubscribeParams(session_id=session_id)
            self._link.call("unsubscribe", params, lambda _: None)

    async def _prompt(
        self, session_id: str, message_id: str, text: str, delivery: calls.Delivery
    ) -> calls.PromptResult:
        params = calls.PromptParams(
            session_id=session_id, message_id=message_id, parts=[TextPart(text=text)], delivery=delivery
        )
        asking = [self._link.ask("prompt", params, calls.PromptResult)]
        if self._rng.random() < 0.2:  # twice at once
            asking.append(self._link.ask("prompt", params, calls.PromptResult))
        answers = await asyncio.gather(*asking, return_exceptions=True)
        results = [answer for answer in answers if not isinstance(answer, BaseException)]
        for error in answers:
            if isinstance(error, BaseException) and not (results and isinstance(error, Refused)):
                raise error
        prompt = self._scene.oracle.prompts[session_id, message_id]
        self._scene.oracle.accepted(prompt, text, results[0])
        return results[-1]

    async def _stop(self, session_id: str, turn_id: str, cancel_queue: calls.CancelQueue) -> calls.StopResult:
        params = calls.StopParams(session_id=session_id, turn_id=turn_id, cancel_queue=cancel_queue)
        return await self._link.ask("stop", params, calls.StopResult, repeatable=turn_id != "current")

    async def _respond(
        self, session_id: str, interaction_id: str, response: InteractionResponse
    ) -> InteractionPart:
        params = calls.RespondParams(session_id=session_id, interaction_id=interaction_id, response=response)
        return (await self._link.ask("respond", params, calls.RespondResult)).interaction

    async def _cancel_input(self, session_id: str, message_id: str) -> calls.PromptResult:
        params = calls.CancelInputParams(session_id=session_id, message_id=message_id)
        return await self._link.ask("cancel_input", params, calls.PromptResult)

    async def _fork(self, session_id: str, message_id: str | None, new_id: str) -> None:
        params = calls.ForkParams(
            session_id=session_id, message_id=message_id or UNSET, new_session_id=new_id, key=f"key {new_id}"
        )
        await self._link.ask("sessions.fork", params, calls.SessionResult)
        self.entered[new_id] = None
        self._subscribe(new_id)
        self._readings[new_id].wanted = True

    async def _chore(self, chore: Chore, session_id: str) -> None:
        of_session = calls.SessionParams(session_id=session_id)
        if chore == "clear":
            await self._link.ask("sessions.clear", of_session, calls.SessionResult, repeatable=False)
        elif chore in {"archive", "unarchive"}:
            archive = calls.ArchiveParams(session_id=session_id, archived=chore == "archive")
            await self._link.ask("sessions.archive", archive, calls.SessionResult)
        elif chore == "rename":
            update = calls.UpdateParams(session_id=session_id, title=f"title {self._rng.randrange(1000)}")
            await self._link.ask("sessions.update", update, calls.SessionResult)
        elif chore == "delete":
            await self._link.ask("sessions.delete", of_session, calls.EmptyResult)
        elif chore == "signal":
            signal = calls.SignalParams(session_id=session_id, name="typing")
            await self._link.ask("signal", signal, calls.EmptyResult, repeatable=False)
        elif chore == "list":
            await self._link.ask("sessions.list", calls.ListParams(limit=2), calls.ListResult)
        elif chore == "earlier":
            await self._earlier(session_id)
        else:
            await self._verify(session_id)

    async def _earlier(self, session_id: str) -> None:
        """Read the page before the window, and merge it where its answer stands in the stream."""
        replica = self._replica_of(session_id)
        first = replica.from_sequence
        done: asyncio.Future[None] = self._scene.loop.create_future()
        replica.expect_page()

        def take(answer: Answer) -> None:
            if isinstance(answer, calls.Page) and self._readings[session_id].channel is not None:
                replica.merge_page(answer)
            else:
                replica.forget_page()
            done.set_result(None)

        params = calls.MessagesParams(
            session_id=session_id,
            limit=2,
            before_sequence=UNSET if first is None else first,
            include_internal=self.wish.include_internal,
        )
        self._link.call("messages", params, take)
        await done

    async def _verify(self, session_id: str) -> None:
        """Compare digests where the answer stands in the stream: there the versions must be equal."""
        replica = self._replica_of(session_id)
        reading = self._readings[session_id]
        asked = reading.asked
        done: asyncio.Future[None] = self._scene.loop.create_future()

        def take(answer: Answer) -> None:
            if isinstance(answer, calls.VerifyResult) and reading.asked == asked and reading.channel:
                self._compare(replica, answer, first)
            done.set_result(None)

        first = replica.from_sequence or 1
        params = calls.VerifyParams(
            session_id=session_id,
            from_sequence=first,
            to_sequence=first + 199,
            include_internal=self.wish.include_internal,
        )
        self._link.call("verify", params, take)
        await done

    def _compare(self, replica: WatchedReplica, theirs: calls.VerifyResult, first: int) -> None:
        complain = self._scene.diary.complain
        if (theirs.epoch, theirs.version) != (replica.epoch, replica.version):
            if self._scene.knobs.loses_frames:
                self._subscribe(replica.session_id)  # as after a gap
                return
            complain(
                f"{self.name}'s {replica.session_id}: verify shows {theirs.epoch}:{theirs.version}, "
                f"the stream is at {replica.epoch}:{replica.version}"
            )
            return
        if replica.from_sequence is None:
            return
        low = max(first, replica.from_sequence)  # a page or a reset may have come since
        mine = [
            (message.sequence, message.revision, message_digest(message))
            for message in replica.messages()
            if message.sequence >= low
        ]
        there = [digest for digest in theirs.digests if digest[0] >= low]
        if mine != there:
            complain(f"{self.name}'s {replica.session_id} is not the server's: {mine} {there}")

    def _replica_of(self, session_id: str) -> WatchedReplica:
        reading = self._readings.get(session_id)
        if reading is None or reading.channel is None:
            raise SessionClosed(session_id, "not opened yet")
        return reading.replica
