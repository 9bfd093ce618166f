"""The cases for clients, a file for each piece of the law; importing this registers them all in order."""

from midstream.conformance.clients.cases import (
    chance,
    contiguity,
    cutting,
    entities,
    listing,
    misfits,
    paging,
    prompting,
    reconnecting,
    subscribing,
    syncs,
    tokens,
    window,
    wire,
)

__all__ = [
    "chance",
    "contiguity",
    "cutting",
    "entities",
    "listing",
    "misfits",
    "paging",
    "prompting",
    "reconnecting",
    "subscribing",
    "syncs",
    "tokens",
    "window",
    "wire",
]
