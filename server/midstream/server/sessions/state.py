"""What a session's loop works on once it is loaded: drafts, commits, ticks, deadlines (SPEC 9)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import structs

from midstream.agents.errors import TurnEnded
from midstream.protocol.errors import IllegalTransition, LimitExceeded, Refused
from midstream.server.sessions import interactions, recovery
from midstream.server.sessions.draft import Draft
from midstream.server.sessions.expiries import Expiries
from midstream.server.sessions.projection import Projection
from midstream.server.sessions.reading import Reading
from midstream.server.sessions.stream import Stream
from midstream.server.sessions.ticks import WAITING_BYTES, GrowingPart, WaitingText, size_of
from midstream.server.sessions.versions import Versions
from midstream.server.sessions.writes import session_write
from midstream.server.storage.commits import commit_of
from midstream.server.storage.records import SessionWrite

if TYPE_CHECKING:
    from midstream.protocol.agent_calls import AttachParams, AttachResult
    from midstream.protocol.frames import DetachCode
    from midstream.protocol.limits import Limits
    from midstream.server.inputs import InputPolicy
    from midstream.server.sessions.commands import Subscriber, WorkerLink
    from midstream.server.sessions.loop import SessionLoop
    from midstream.server.sessions.projection import FinishedDraft
    from midstream.server.sessions.services import Holder, Run, Services
    from midstream.server.storage.records import AttachmentRow, LoadedSession


class LoadedState:
    """One loaded session, as its loop and its agent use it. Only the loop's task changes it."""

    __slots__ = (
        "_agent_turn", "_expiries", "_is_planned", "_kept", "_part_bytes", "_published", "_run",
        "_services", "_waiting", "busy", "closed", "is_torn", "loop", "next_tick_at", "projection", "reading",
        "session_no", "stream", "versions",
    )  # fmt: skip

    def __init__(self, loop: SessionLoop, services: Services, loaded: LoadedSession) -> None:
        """Start from the store. :func:`load` recovers what was left open."""
        self.loop = loop
        """The loop that owns this state."""
        self._services = services
        self.session_no = loaded.session_no
        self.versions = Versions(
            loaded.ledger, generation=services.database.generation, new_epoch=services.ids.epoch()
        )
        self.projection = Projection(loaded)
        self.stream = Stream(
            loop.channel, self.projection, self.versions, history_bytes=services.settings.history_bytes
        )
        self.reading = Reading(
            services.database, loaded.session_no, self.stream, services.settings.limits, services.shelf
        )
        self.busy = True
        """False only while the loop sleeps: then a tick publishes by itself, else the loop does it."""
        self.closed = False
        """True when nothing more is to be done: the loop ends."""
        self.is_torn = False
        """True where a change was stored, and something broke before everybody was told."""
        self._waiting = WaitingText()
        self._part_bytes = services.settings.limits.part_bytes
        self._published: asyncio.Event | None = None  # made when somebody waits
        self.next_tick_at = 0.0
        """When text may be published next, by the event loop's time: kept by the pace."""
        self._is_planned = False
        """Whether a tick is to come; where there is none and text waits, the loop publishes it."""
        self._run: Run | None = None
        self._agent_turn: str | None = None
        self._expiries = Expiries()
        self._kept = loaded.attachment
        """How far the remote agent of the turn that was running had come."""

    @property
    def input_policy(self) -> InputPolicy:
        """How inputs are taken."""
        return self._services.settings.inputs

    # Drafts and commits

    async def draft(self) -> Draft:
        """Begin a draft on all that was streamed so far, at the server's time."""
        await self.flush()
        return Draft(
            self.projection,
            now=self.versions.stamp(self._services.clock.wall_ms()),
            ids=self._services.ids,
            limits=self._services.settings.limits,
            # what the agent writes from here on is not in the draft
            mark=None if self._run is None else self._run.mark(),
        )

    async def commit(self, draft: Draft, *, deletes: bool = False) -> None:
        """Persist a draft, then publish it (SPEC 9).

        Raises:
            CommitFailed: it is not known whether it is stored; the loop ends.

        """
        if draft.mark is not None:
            draft.take_unstored()
        before = self.versions.published
        begins_epoch = self.versions.begins_epoch
        ledger, ended = self.versions.next_row(clear=draft.clears)
        finished = draft.finish(ledger.version)
        write = session_write(
            self.session_no,
            self.projection,
            finished,
            ledger=ledger,
            epoch_end=ended,
            attachment=draft.mark,
            deleted=deletes,
        )
        await self._store(write)
        self.is_torn = True
        self.versions.committed(ledger)
        if finished.session is not None or deletes:
            self._services.watch.note(finished.session or self.projection.session, removed=deletes)
        self.stream.publish_stored(finished, begins_epoch=begins_epoch, before=before)
        if draft.clears:
            self.stream.forget_cleared()
        if self._run is not None:
            self._run.committed(draft.mark, finished)
        self._follow_turn(finished)
        self.is_torn = False

    async def publish(self, draft: Draft) -> None:
        """Publish a draft that the next commit will store; at once where it makes a message (SPEC 2.4)."""
        if draft.makes_message() or draft.changes_session():
            await self.commit(draft)
            return
        await self._make_room()
        finished = draft.finish(self.versions.take())
        self.stream.publish_live(finished)

    async def _store(self, write: SessionWrite) -> None:
        # the commit happens or not whatever becomes of this task: a job that was handed in is done
        await self._services.database.write(commit_of(write))

    # Streamed text

    def append(self, turn_id: str, part: GrowingPart, text: str) -> bool:
        """Take text for an open part; it is published with the next tick.

        Costs less than 1 µs. Returns whether the producer should wait for :meth:`published`.

        Raises:
            TurnEnded: the turn does not run.
            IllegalTransition: the part has ended, or is gone.
            LimitExceeded: the part would be longer than ``part_bytes``.

        """
        if self._agent_turn != turn_id:
            raise TurnEnded
        if not self.projection.accepts(part):
            raise IllegalTransition("stream", f"part {part.place.part_id!r}", "done", "streaming")
        size = size_of(text)
        there = part.size + size
        if there > self._part_bytes:
            raise LimitExceeded("part_bytes", self._part_bytes, there)
        if not size:
            return False
        part.size = there
        self._waiting.add(part, text, size)
        if not self._is_planned:
            self._is_planned = True
            self._services.pace.plan(self)
        return self._waiting.size >= WAITING_BYTES

    async def published(self) -> None:
        """Wait until the text that waits now has been published, or dropped with its turn."""
        if self._waiting:
            self._published = self._published or asyncio.Event()
            self._published.clear()
            await self._published.wait()

    def tick(self) -> None:
        """Publish what waits, or have the loop do it, which is busy or must raise the ceiling first."""
        self._is_planned = False
        if self.busy or not self._flush_room() or self.versions.is_low:
            self.loop.nudge()

    async def flush_due(self) -> None:
        """Publish what a tick that came while the loop was busy left waiting."""
        if self._waiting and not self._is_planned:
            await self.flush()

    async def flush(self) -> None:
        """Publish all text that waits: before anything is read or takes a version (SPEC 2)."""
        while not self._flush_room():
            await self._make_room()

    def _flush_room(self) -> bool:
        """Publish what waits; return False where the ceiling must be raised first."""
        waiting, stream = self._waiting, self.stream
        if waiting.parts:
            now = self.versions.stamp(self._services.clock.wall_ms())
            while waiting.parts:
                if self.versions.room() < 1:
                    stream.send()
                    return False
                part, text, size = waiting.take()
                if self.projection.accepts(part):
                    stream.publish_delta(part, text, size, now)
        stream.send()
        if self._published is not None:
            self._published.set()
        return True

    async def _make_room(self) -> None:
        if self.versions.room() > 0:
            return
        if self.versions.begins_epoch:
            # an epoch is named to its readers by a commit's sync, so nothing else may begin one
            message = "something was to be published before the first commit of a load"
            raise RuntimeError(message)
        await self._store_ledger()

    async def _store_ledger(self, attachment: AttachmentRow | None = None) -> None:
        """Raise the ceilings where they are low, and store how far a remote agent has come."""
        row, ended = self.versions.next_row(versions=0)
        write = SessionWrite(session_no=self.session_no, ledger=row, epoch_end=ended, attachment=attachment)
        await self._store(write)
        self.versions.committed(row, versions=0)

    # Turns and interactions

    def _follow_turn(self, finished: FinishedDraft) -> None:
        """Start the agent of a turn that began, and cut off the one of a turn that ended."""
        self._services.tally.turns_changed(finished.turns)
        running = self.projection.turn
        if running is not None and running.turn_id == self._agent_turn:
            return
        self.cut_off()
        if running is None:
            return
        self._agent_turn = running.turn_id
        prompts = (
            one.whole()
            for one in reversed(finished.messages)
            if one.head.role == "user" and one.head.turn_id == running.turn_id
        )
        kept, self._kept = self._kept, None
        self._run = self._services.agents.start(self, running, next(prompts, None), kept)

    def cut_off(self, code: DetachCode = "ended") -> None:
        """Stop the agent, and drop what it streamed and was not published.

        ``code`` says whether the turn has ended, or goes on elsewhere (``reload``).
        """
        self._agent_turn = None
        self._waiting.clear()
        if self._published is not None:
            self._published.set()
        run, self._run = self._run, None
        if run is not None:
            run.over(code)

    @property
    def limits(self) -> Limits:
        """The server's limits."""
        return self._services.settings.limits

    def new_id(self, kind: str) -> str:
        """Return a new id."""
        return self._services.ids.new(kind)

    def runs(self, turn_id: str) -> bool:
        """Say whether the agent of this turn has not been cut off."""
        return self._agent_turn == turn_id

    def agent_finished(self) -> None:
        """Note that the agent is about to end its turn by itself."""
        if self._run is not None:
            self._run.ending()

    async def attach(self, link: WorkerLink, params: AttachParams) -> AttachResult:
        """Give the running turn to a worker.

        Raises:
            Refused: the turn does not run, another worker has it, or the server runs it itself.

        """
        if self._run is None or not self.runs(params.turn_id):
            raise Refused("turn_ended", f"Turn {params.turn_id!r} does not run. Stop its agent.")
        await self.flush()
        return await self._run.attach(link, params)

    async def keep(self, holder: Holder | None = None) -> None:
        """Store everything that was taken of a remote agent, and who holds its turn, if that changes."""
        draft = await self.draft()
        if self._run is None or draft.mark is None:
            return
        if holder is not None:
            draft.mark = structs.replace(draft.mark, **holder)
        draft.take_unstored()
        if not draft.is_empty():
            await self.commit(draft)
            return
        await self._store_ledger(draft.mark)
        self._run.stored(draft.mark)

    # Subscribers

    async def bring_up(self, subscriber: Subscriber) -> None:
        """Bring a subscriber that is behind to the version published last, and no further.

        Publishes nothing itself: an answer that follows shows the same version (SPEC 3.7).
        """
        if not self.is_behind(subscriber):
            return
        cursor = subscriber.cursor
        payload = await self.reading.sync(
            cursor, limit=subscriber.limit, include_internal=subscriber.include_internal
        )
        subscriber.bring_up(payload)

    def is_behind(self, subscriber: Subscriber) -> bool:
        """Say whether a subscriber lacks something that was published."""
        cursor = subscriber.cursor
        if subscriber not in self.stream.subscribers or not subscriber.behind or cursor is None:
            return False
        return cursor.version != self.versions.published or cursor.epoch != self.versions.epoch

    # Time

    async def on_time(self) -> None:
        """Do what is due: text whose tick has passed, ceilings, and interactions that expire."""
        await self.flush_due()
        if self.versions.is_low:
            self.busy = False  # text is published meanwhile, below the old ceilings: it waits for no disk
            await self._store_ledger()
            self.busy = True
        clock = self._services.clock
        self._expiries.follow(self.projection, self.versions, now=clock.now())
        due = self._expiries.due(self.projection, now=clock.now(), wall_ms=clock.wall_ms())
        if due:
            draft = await self.draft()
            for sequence, part in due:
                interactions.expire(draft, sequence, part)
            await self.commit(draft)

    def seconds_to_deadline(self, used_at: float) -> float | None:
        """Return how long the loop may sleep."""
        delays: list[float] = []
        clock = self._services.clock
        self._expiries.follow(self.projection, self.versions, now=clock.now())
        expiry = self._expiries.seconds(clock.now(), clock.wall_ms())
        if expiry is not None:
            delays.append(expiry)
        if not self.has_work() and not self.stream.subscribers:
            delays.append(used_at + self._services.settings.idle_seconds - clock.now())
        return max(0.001, min(delays)) if delays else None

    def has_work(self) -> bool:
        """Say whether a turn runs or input waits."""
        return self.projection.turn is not None or bool(self.projection.queue)

    def is_idle(self, used_at: float) -> bool:
        """Say whether nobody needs the session to be loaded any more."""
        if self.closed:
            return True
        if self.has_work() or self.stream.subscribers:
            return False
        return self._services.clock.now() - used_at >= self._services.settings.idle_seconds

    async def unload(self) -> None:
        """Store that the session stands still, so that the next load goes on where this one ended."""
        if not self.versions.dirty or self.closed:
            return
        row = self.versions.clean_row()
        await self._store(SessionWrite(session_no=self.session_no, ledger=row))
        self.versions.cleaned(row)

    def purge(self) -> None:
        """Have the rows removed that nobody can see any more, in the background."""
        self._services.purge(self.session_no)

    async def close(self) -> None:
        """End the running turn as interrupted, because the server stops, and unload (SPEC 9).

        A turn that outlives the server is stored as far as it is, and goes on.
        """
        draft = await self.draft()
        if draft.mark is None:
            recovery.interrupt(draft)
            if not draft.is_empty():
                await self.commit(draft)
        else:
            await self.keep()
        self.cut_off("reload")
        await self.unload()
        self.closed = True
