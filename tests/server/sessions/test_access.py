"""The policy of tokens: what it lets do, what its lists show, and that these agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.protocol.errors import Forbidden
from midstream.server.sessions.access import (
    LOCAL,
    NOBODY,
    ByToken,
    Everybody,
    Identity,
    SessionRef,
    check_create,
    in_order,
    scopes_of,
)
from midstream.server.storage import listing, store
from tests.server.storage.books import new_connection, new_ledger, new_session

POLICY = ByToken()
IDS = st.text("ab-é%*", min_size=1, max_size=3)
OWNERS = st.sampled_from([None, "alice", "bob", "local", ""])
PATTERNS = st.lists(IDS | IDS.map(lambda one: f"{one}*") | st.just("*"), max_size=3).map(tuple)
IDENTITIES = st.builds(
    Identity,
    subject=st.sampled_from(["alice", "bob"]),
    scopes=st.sampled_from([frozenset({"read"}), frozenset({"read"}), frozenset({"read", "admin"})]),
    sessions=st.none() | PATTERNS,
)
SESSIONS = st.dictionaries(IDS, OWNERS, max_size=6)


def may_see(who: Identity, session_id: str, owner: str | None) -> bool:
    """SPEC 10.5, once more and simpler."""
    if "admin" in who.scopes:
        return True
    if who.sessions is None:
        return owner == who.subject
    for one in who.sessions:
        if one == session_id or (one[-1] == "*" and session_id[: len(one) - 1] == one[:-1]):
            return True
    return False


@given(who=IDENTITIES, session_id=IDS, owner=OWNERS)
def test_what_may_be_seen_is_what_the_specification_says(
    who: Identity, session_id: str, owner: str | None
) -> None:
    """And what may not be seen may be neither written nor deleted."""
    expected = may_see(who, session_id, owner)
    for action in ("read", "write", "delete"):
        assert POLICY.authorize(who, action, SessionRef(session_id, owner)) == expected


@settings(max_examples=200, deadline=None)
@given(who=IDENTITIES, sessions=SESSIONS, limit=st.integers(1, 7), few=st.sampled_from([0, listing.FEW]))
def test_a_list_shows_what_may_be_seen_and_nothing_else(
    who: Identity, sessions: dict[str, str | None], limit: int, few: int
) -> None:
    """Whatever the token says and whatever is there, page by page, by both ways of reading."""
    connection = new_connection()
    for number, (session_id, owner) in enumerate(sessions.items()):
        session = new_session(session_id, updated_at=number % 3)
        store.create_session(connection, session, new_ledger(), owner=owner)
    shown: list[str] = []
    after, begun = None, False
    usual, listing.FEW = listing.FEW, few  # type: ignore[misc]  # the other way is for more sessions
    try:
        while after is not None or not begun:
            begun = True
            items, after = listing.list_sessions(
                connection, limit=limit, after=after, archived=False, selection=POLICY.selection(who)
            )
            shown += [one.session_id for one in items]
    finally:
        listing.FEW = usual  # type: ignore[misc]  # likewise
    assert sorted(shown) == sorted(one for one, owner in sessions.items() if may_see(who, one, owner))


@given(who=IDENTITIES, session_id=IDS, owner=OWNERS)
def test_who_may_create_an_id_may_see_it_and_the_answer_knows_nothing_of_it(
    who: Identity, session_id: str, owner: str | None
) -> None:
    """So `already_exists` tells nobody anything new."""
    may = POLICY.authorize(who, "create", SessionRef(session_id))
    assert not may or may_see(who, session_id, owner)
    if not may:
        with pytest.raises(Forbidden) as caught:
            check_create(POLICY, who, session_id, "session_id")
        assert session_id not in caught.value.message or len(session_id) < 3


@given(one=IDENTITIES, other=IDENTITIES, session_id=IDS, owner=OWNERS)
def test_those_of_one_group_see_the_same(
    one: Identity, other: Identity, session_id: str, owner: str | None
) -> None:
    """They are sent the same bytes."""
    if POLICY.group(one) == POLICY.group(other):
        assert may_see(one, session_id, owner) == may_see(other, session_id, owner)


def test_a_worker_runs_the_turns_that_its_token_covers_and_sees_no_more() -> None:
    """All where it names no sessions; to see them in lists is another right."""
    anywhere = Identity(subject="w", scopes=scopes_of(frozenset({"agent"})))
    somewhere = Identity(subject="w", scopes=scopes_of(frozenset({"agent"})), sessions=("a*",))
    for session_id, covered in (("a1", True), ("b1", False)):
        ref = SessionRef(session_id, "alice")
        assert POLICY.authorize(anywhere, "agent", ref)
        assert not POLICY.authorize(anywhere, "read", ref)
        assert POLICY.authorize(somewhere, "agent", ref) == covered


def test_nobody_may_nothing_and_without_tokens_everybody_may_everything() -> None:
    """What a session that nobody made belongs to is nobody, not the one without a name."""
    for owner in (None, "", "local"):
        assert not POLICY.authorize(NOBODY, "read", SessionRef("s", owner))
        assert not POLICY.authorize(NOBODY, "create", SessionRef(None))
        assert Everybody().authorize(NOBODY, "delete", SessionRef("s", owner))
    assert LOCAL.owner is None
    assert in_order(LOCAL.scopes) == ["read", "write", "internal", "agent", "admin"]
