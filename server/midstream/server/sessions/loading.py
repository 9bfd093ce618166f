"""Brings a session into memory, and recovers what an unclean end left open (SPEC 9).

Where the disk takes no commit, it is shown as it is stored until it does.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog
from msgspec import UNSET

from midstream.server.sessions import recovery
from midstream.server.sessions.repair import Repair, as_stored, repair
from midstream.server.sessions.state import LoadedState
from midstream.server.storage import store
from midstream.server.storage.errors import CommitFailed

if TYPE_CHECKING:
    from midstream.server.sessions.loop import SessionLoop
    from midstream.server.sessions.services import Services

log = structlog.get_logger("midstream.session")


async def load(loop: SessionLoop, services: Services) -> tuple[LoadedState | None, Repair | None]:
    """Load a session, recovering what an unclean end left open; None where there is no such session.

    Where that cannot be stored, the repair is still owed.
    """
    loaded = await services.database.read(partial(store.load_session, session_id=loop.session_id))
    if loaded is None:
        return None, None
    services.owners.load(loop.session_id, loaded.owner)
    state = LoadedState(loop, services, loaded)
    if recovery.needs_recovery(state.projection):
        log.info("session_recovers", running_turn=loaded.session.running_turn_id is not UNSET)
        try:
            await repair(state, services)
        except CommitFailed:
            state = LoadedState(loop, services, as_stored(loaded))
            return state, Repair(state, services)
    return state, None
