"""Laws of a host's policy for inputs (SPEC 8.1)."""

from __future__ import annotations

import pytest

from midstream.protocol.calls import Delivery
from midstream.protocol.errors import Refused
from midstream.server.inputs import DELIVERIES, AutoDelivery, InputPolicy


@pytest.mark.parametrize(
    ("auto", "becomes"),
    [("absorb", "auto"), ("queue", "queue"), ("reject", "reject"), ("interrupt", "interrupt")],
)
@pytest.mark.parametrize("allowed", [DELIVERIES, ("queue",), ()])
def test_auto_is_what_the_host_says_and_may_always_be_named(
    auto: AutoDelivery, becomes: Delivery, allowed: tuple[Delivery, ...]
) -> None:
    """Also where it means what nobody may name."""
    assert InputPolicy(auto=auto, allowed=allowed).delivery("auto") == becomes


@pytest.mark.parametrize("asked", ["queue", "reject", "interrupt"])
def test_another_delivery_is_as_asked_or_refused_with_those_that_are_not(asked: Delivery) -> None:
    """Whatever `auto` means."""
    policy = InputPolicy(auto="reject")
    assert policy.delivery(asked) == asked
    others: tuple[Delivery, ...] = tuple(name for name in DELIVERIES if name != asked)
    with pytest.raises(Refused) as refused:
        InputPolicy(auto="reject", allowed=others).delivery(asked)
    assert refused.value.details == {"reason": "delivery_not_allowed"}
    assert str(refused.value).endswith(f"Send it with one of: {', '.join(others)}.")
