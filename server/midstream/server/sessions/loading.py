"""Brings a session into memory, and recovers what an unclean end left open (SPEC 9)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog
from msgspec import UNSET

from midstream.server.sessions import recovery
from midstream.server.sessions.state import LoadedState
from midstream.server.storage import store

if TYPE_CHECKING:
    from midstream.server.sessions.loop import SessionLoop
    from midstream.server.sessions.services import Services

log = structlog.get_logger("midstream.session")


async def load(loop: SessionLoop, services: Services) -> LoadedState | None:
    """Load a session, recovering what an unclean end left open; None where there is no such session."""
    loaded = await services.database.read(partial(store.load_session, session_id=loop.session_id))
    if loaded is None:
        return None
    state = LoadedState(loop, services, loaded)
    if recovery.needs_recovery(state.projection):
        log.info("session_recovers", running_turn=loaded.session.running_turn_id is not UNSET)
        draft = await state.draft()
        recovery.recover(draft, turn_goes_on=services.agents.outlive_server)
        await state.commit(draft)
    return state
