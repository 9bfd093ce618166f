"""A subscription that believes nothing: each frame of it is held against SPEC.md (G4 to G9, G20)."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from midstream.conformance.outcome import Failed
from midstream.conformance.servers.frame import Frame, Map, Plain
from midstream.conformance.servers.ledger import Ledger
from midstream.protocol.calls import Page, SubscribeResult
from midstream.protocol.digest import message_digest
from midstream.protocol.frames import Change, Delta, Mark, ShortDelta, Skip, Sync, SyncPayload
from midstream.protocol.merge import Replica
from midstream.protocol.model import Message
from midstream.protocol.outcomes import Gap, PageOutcome

OPEN = {"streaming", "input-streaming", "ready", "waiting-user", "running", "pending"}
"""States of parts that may still move (2.6)."""


class Subscription:
    """One subscription of one connection, from its answer on.

    Attributes:
        replica: the judge: what a client has that follows the merge law.
        channel: of this load of the session.
        answer: the answer of `subscribe`, as plain values.
        frames: what came since, in order, marks included.
        closed: the frame that ended it, if it was ended.
    """

    def __init__(self, session_id: str, replica: Replica, ledger: Ledger, *, paced: bool = False) -> None:
        """Begin with a replica: an empty one, or one that a cursor was taken from."""
        self.session_id = session_id
        self.replica = replica
        self.channel = -1
        self.answer: Map = {}
        self.frames: list[Frame] = []
        self.closed: Plain | None = None
        self._ledger = ledger
        self._paced = paced

    @property
    def last(self) -> int:
        """The version that the replica stands at."""
        return self.replica.version

    @property
    def messages(self) -> list[Map]:
        """The replica's messages, as plain values."""
        return cast("list[Map]", msgspec.to_builtins(self.replica.messages()))

    @property
    def session(self) -> Map:
        """The replica's session, as plain values."""
        return cast("Map", msgspec.to_builtins(self.replica.session))

    @property
    def turns(self) -> dict[str, Map]:
        """The replica's turns by id."""
        return {name: cast("Map", msgspec.to_builtins(turn)) for name, turn in self.replica.turns.items()}

    def tags(self, since: int = 0) -> list[str]:
        """The tags of the frames that came, without marks."""
        return [frame.tag for frame in self.frames[since:] if frame.tag != "mark"]

    def begin(self, plain: Map, answer: SubscribeResult) -> None:
        """Take the answer of `subscribe`."""
        self.answer, self.channel = plain, answer.channel
        self._check_sync(answer.sync)
        outcome = self.replica.apply_sync(answer.sync)
        if isinstance(outcome, Gap):
            raise Failed(
                "the sync in the answer cannot be applied (4.4)",
                expected="a sync",
                seen=(outcome.reason, plain),
            )
        self._note(plain["sync"])

    def take(self, frame: Frame) -> None:
        """Take a frame of the channel."""
        if self.closed is not None:
            raise Failed("a frame came after `closed` (3.9)", expected="nothing", seen=frame.plain)
        self.frames.append(frame)
        typed = frame.typed
        if isinstance(typed, Mark):
            if typed.version != self.last:
                raise Failed(
                    "a mark names another version than the stream has (3.9)",
                    expected=self.last,
                    seen=typed.version,
                )
            return
        self._check_place(frame)
        if isinstance(typed, (Delta, ShortDelta, Change, Skip, Sync)):
            outcome = self.replica.apply(typed)
            if isinstance(outcome, Gap):
                seen = (outcome.reason, frame.plain)
                raise Failed(
                    "a frame cannot be applied by the merge law (4.4)", expected="a next step", seen=seen
                )
        if isinstance(typed, Change):
            self._note({**frame.plain[4], "epoch": self.replica.epoch})
            self._check_ends(frame.plain[4])
        elif isinstance(typed, Sync):
            self._note(frame.plain[2])

    def _check_place(self, frame: Frame) -> None:
        """Fail where a frame does not go on from where the replica stands, or shows what it may not."""
        typed = frame.typed
        if isinstance(typed, (Delta, ShortDelta, Change)):
            self._check_next(frame.plain, typed.version)
        elif isinstance(typed, Skip) and not typed.from_version <= self.last < typed.version:
            raise Failed(
                "G6: a skip does not join on", expected=f"from at most {self.last}", seen=frame.plain
            )
        elif isinstance(typed, Sync):
            self._check_sync(typed.payload)
        if isinstance(typed, Change):
            self._check_change(frame.plain)

    def merge(self, page: Page) -> PageOutcome:
        """Merge a page by rules 13 to 16."""
        self.replica.expect_page()
        return self.replica.merge_page(page)

    def digests(self) -> list[list[Any]]:
        """Return what `verify` must say of the replica's messages."""
        return [[one.sequence, one.revision, message_digest(one)] for one in self.replica.messages()]

    def _check_next(self, plain: Plain, version: int) -> None:
        if version != self.last + 1:
            raise Failed("G6: versions come in order, each once", expected=self.last + 1, seen=plain)
        if self._paced:
            raise Failed("a subscription with a pace gets syncs only (6)", expected="a sync", seen=plain)
        message = self._grown(plain)
        turn = (
            None
            if message is None or not isinstance(message.turn_id, str)
            else self.replica.turns.get(message.turn_id)
        )
        if turn is not None and turn.state != "running":
            raise Failed("G9: text of a turn came after its end", expected=turn, seen=plain)

    def _grown(self, plain: Plain) -> Message | None:
        if plain[0] == "change":
            return None
        session = self.replica.session
        sequence = plain[4] if plain[0] == "d" else (session.message_count if session else 0)
        found = [one for one in self.replica.messages()[-3:] if one.sequence == sequence]
        return found[0] if found else None

    def _check_sync(self, payload: SyncPayload) -> None:
        if payload.mode == "reset":
            if payload.epoch == self.replica.epoch and payload.version < self.last:
                raise Failed(
                    "G4: a reset of the same epoch went back", expected=self.last, seen=payload.version
                )
        elif self.replica.epoch is not None and (
            not isinstance(payload.from_version, int) or payload.from_version > self.last
        ):
            raise Failed(
                "a sync does not begin where the replica stands (4.4)",
                expected=self.last,
                seen=payload.from_version,
            )
        if payload.committed() > payload.version:
            raise Failed(
                "durable is at or below the version (3.8)", expected=payload.version, seen=payload.durable
            )
        if not self.replica.include_internal and any(
            one.visibility == "internal" for one in payload.messages
        ):
            raise Failed(
                "G20: a sync shows an internal message", expected="visible ones", seen=payload.messages
            )

    def _check_change(self, plain: Plain) -> None:
        version, content = plain[2], plain[4]
        for entry in content.get("messages", []):
            if entry.get("visibility") == "internal" and not self.replica.include_internal:
                raise Failed("G20: an internal message was shown", expected="a skip", seen=entry)
            if {"appends", "ended", "revision"} & entry.keys():
                raise Failed(
                    "an entry in a change has what only syncs have (3.4)", expected="parts", seen=entry
                )
            self._check_parts(entry)
        turns = content.get("turns", [])
        for entity in [*turns, *([content["session"]] if "session" in content else [])]:
            if entity["revision"] > version:
                raise Failed("an entity is newer than its change (2.7)", expected=version, seen=entity)
        for turn in turns:
            known = self.replica.turns.get(turn["turn_id"])
            if known is not None and known.state != "running" and turn["state"] != known.state:
                raise Failed("the end of a turn is final (2.6)", expected=known.state, seen=turn)

    def _check_parts(self, entry: Map) -> None:
        before = [one for one in self.replica.messages() if one.sequence == entry["sequence"]]
        if not before:
            return
        known = cast("list[Map]", msgspec.to_builtins(before[0].parts))
        for part in cast("list[Map]", entry.get("parts", [])):
            number = int(part["sequence"])
            if number > len(known):
                continue
            old = known[number - 1]
            if old.get("part_id") != part["part_id"]:
                continue
            if old["type"] != part["type"]:
                raise Failed("a part keeps its type (2.3)", expected=old, seen=part)
            state = "status" if part["type"] == "interaction" else "state"
            if old.get(state) not in OPEN and old.get(state) != part.get(state):
                raise Failed("an end state is final (2.6)", expected=old, seen=part)

    def _check_ends(self, content: Map) -> None:
        for turn in content.get("turns", []):
            if turn["state"] == "running":
                continue
            for message in self.replica.messages():
                if message.turn_id != turn["turn_id"]:
                    continue
                plain = cast("Map", msgspec.to_builtins(message))
                states = [
                    part.get("status" if part["type"] == "interaction" else "state")
                    for part in plain["parts"]
                ]
                if plain.get("state") == "streaming" or OPEN & set(states):
                    raise Failed(
                        "G9: at a turn's end every part of it has an end state",
                        expected="no open part",
                        seen=plain,
                    )

    def _note(self, content: Map) -> None:
        if "session" in content:
            self._ledger.session(content["session"])
        for turn in content.get("turns", []):
            self._ledger.turn(content["epoch"], turn)
