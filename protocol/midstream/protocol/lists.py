"""The list of sessions: its pages, its watch, and what a watch is told (SPEC 4.8, 7.11)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from midstream.protocol.model import Session


class ListParams(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """``sessions.list``: the last changed first; ``after`` is the ``next_after`` of the page before."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    after: str | UnsetType = UNSET
    archived: bool = False


class ListResult(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A page of sessions."""

    items: list[Session]
    next_after: str | UnsetType = UNSET


class WatchParams(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """``sessions.watch``: its answer is the first page of ``sessions.list``."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    archived: bool = False


class UnwatchParams(msgspec.Struct, frozen=True, kw_only=True):
    """``sessions.unwatch``."""


class ListChanges(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What became of sessions; each is named once.

    ``incomplete`` says that something was left out and that the watch is over: ask again.
    """

    changed: list[Session] = []
    removed: list[str] = []
    incomplete: bool = False
