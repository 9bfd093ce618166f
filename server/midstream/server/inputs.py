"""What a host lets inputs do while a turn runs: what ``auto`` means, and what may be asked for (SPEC 8.1)."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

from midstream.protocol.calls import Delivery
from midstream.protocol.errors import Refused

AutoDelivery: TypeAlias = Literal["absorb", "queue", "reject", "interrupt"]
DELIVERIES: tuple[Delivery, ...] = get_args(Delivery)


class InputPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How one server takes inputs."""

    auto: AutoDelivery = "absorb"
    """What an input that is sent with ``auto`` does; with ``absorb`` it waits until a step takes it in."""
    allowed: tuple[Delivery, ...] = DELIVERIES
    """The deliveries that a caller may name; ``auto`` always may be."""

    def delivery(self, asked: Delivery) -> Delivery:
        """Return how an input is delivered. ``auto`` stays that only where it waits to be absorbed.

        Raises:
            Refused: the caller may not name this delivery here.

        """
        if asked == "auto":
            return "auto" if self.auto == "absorb" else self.auto
        if asked not in self.allowed:
            names = ", ".join(name for name in DELIVERIES if name == "auto" or name in self.allowed)
            text = f"This server takes no input with delivery {asked!r}. Send it with one of: {names}."
            raise Refused("delivery_not_allowed", text)
        return asked
