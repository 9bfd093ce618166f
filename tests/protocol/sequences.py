"""What a replica was given and what came of it, for clients in other languages to do the same.

``python -m tests.protocol.sequences COUNT`` prints a line of JSON for each of COUNT conversations of
:mod:`tests.protocol.test_merge_properties`: `steps`, each ``["frame", frame, outcome]``,
``["page", page, outcome]`` or ``["reload"]``, and the replica at the end in canonical form.
"""

from __future__ import annotations

import sys
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from midstream.protocol.codec import JSON
from midstream.protocol.digest import canonical
from midstream.protocol.merge import Replica, SavedReplica
from midstream.protocol.outcomes import Applied, Gap, Outcome, PageOutcome
from tests.protocol import test_merge_properties as properties

if TYPE_CHECKING:
    from midstream.protocol.calls import Page
    from midstream.protocol.frames import SessionFrame
    from midstream.protocol.values import Value

Step: TypeAlias = "list[Value]"
NAMES = [name for name, weight in properties.WEIGHTS.items() for _ in range(weight)]
LONGEST = 100
taken: list[Step] = []
"""The steps of the conversation that goes on now."""


class Recorded(Replica):
    """A replica that notes what it is given."""

    def apply(self, frame: SessionFrame) -> Outcome:
        """Apply a frame, and note it."""
        outcome = super().apply(frame)
        taken.append(["frame", _plain(frame), _word(outcome)])
        return outcome

    def merge_page(self, page: Page) -> PageOutcome:
        """Merge a page of this version, and note it; to bring an older one up to date is a MAY (rule 16)."""
        if page.version != self.version:
            self.forget_page()
            return PageOutcome.REREAD
        outcome = super().merge_page(page)
        words = {PageOutcome.MERGED: "applied", PageOutcome.REREAD: "again", PageOutcome.DROPPED: "ignored"}
        taken.append(["page", _plain(page), words[outcome]])
        return outcome

    @classmethod
    def restore(cls, saved: SavedReplica) -> Replica:
        """Come back from a store, and note it."""
        taken.append(["reload"])
        replica = super().restore(saved)
        assert isinstance(replica, Recorded)
        return replica


def conversation(seed: int) -> tuple[list[Step], str]:
    """Return the steps of one conversation, and the replica at its end."""
    chance = Random(seed)
    taken.clear()
    talk = properties.Conversation(internal=False, history=chance.randrange(10))
    steps = [
        (chance.choice(NAMES), chance.randrange(12), chance.randrange(12))
        for _ in range(chance.randrange(LONGEST))
    ]
    talk.run(steps)
    replica = talk.replica
    view = {
        "messages": replica.messages(),
        "turns": [replica.turns[name] for name in sorted(replica.turns)],
        "session": replica.session,
        "cursor": replica.cursor(),
        "from_sequence": replica.from_sequence,
        "has_more": replica.has_more,
    }
    return list(taken), canonical(_plain(view)).decode()


def _word(outcome: Outcome) -> str:
    if isinstance(outcome, Gap):
        return "gap" if outcome.keep_cursor else "restart"
    return "applied" if isinstance(outcome, Applied) else "ignored"


def _plain(value: object) -> Value:
    plain: Value = msgspec.json.decode(JSON.encode(value))
    return plain


def main(count: int) -> None:
    """Print so many conversations."""
    # the conversation makes its replica by this name
    setattr(properties, "Replica", Recorded)  # noqa: B010 - it is no name that the module offers
    for seed in range(count):
        steps, end = conversation(seed)
        sys.stdout.write(JSON.encode({"seed": seed, "steps": steps, "end": end}).decode() + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
