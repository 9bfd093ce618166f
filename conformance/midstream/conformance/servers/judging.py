"""What errors and answers must be, whatever was asked (SPEC 7, 11.1; G5, G20)."""

from __future__ import annotations

from midstream.conformance.outcome import Failed
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.ledger import Ledger

RETRYABLE = {"overloaded", "unavailable"}
FINAL = {
    "internal", "invalid", "malformed", "unknown_frame", "unknown_method", "not_found", "already_exists",
    "forbidden", "refused", "idempotency_conflict", "interaction_closed", "illegal_transition",
    "limit_exceeded",
}  # fmt: skip
"""The codes of SPEC 11.1: whether the same call may succeed later."""


def check_form(info: Map) -> None:
    """Fail where an error has not the form of SPEC 11.1."""
    for key, kind in (("code", str), ("message", str), ("retryable", bool)):
        if not isinstance(info.get(key), kind):
            raise Failed("an error has the wrong form (11.1)", expected=f"{key}: {kind.__name__}", seen=info)
    retryable = info["code"] in RETRYABLE
    if info["code"] in RETRYABLE | FINAL and info["retryable"] is not retryable:
        raise Failed(f"whether {info['code']} is retryable (11.1)", expected=retryable, seen=info)


def check_error(info: Map, code: str, details: Map, what: str) -> None:
    """Fail unless an error has this code and at least these details."""
    check_form(info)
    seen = {key: info.get("details", {}).get(key) for key in details}
    if (info["code"], seen) != (code, details):
        raise Failed(f"{what}: another error", expected={"code": code, "details": details}, seen=info)


def check_view(method: str, params: Map, result: Map, ledger: Ledger) -> None:
    """Fail where an answer shows what the caller did not ask to see, or contradicts another one."""
    if method == "messages":
        hidden = [one for one in result["items"] if one["visibility"] == "internal"]
        if hidden and not params.get("include_internal"):
            raise Failed("G20: a page shows internal messages", expected="visible ones", seen=hidden)
        sequences = [one["sequence"] for one in result["items"]]
        if sequences != sorted(set(sequences)):
            raise Failed("a page is not ascending (7.3)", expected=sorted(set(sequences)), seen=sequences)
        if not params.get("stored"):
            for message in result["items"]:
                ledger.message(result["epoch"], message)
            for turn in result["turns"]:
                ledger.turn(result["epoch"], turn)
    if method == "message":
        ledger.message(result["epoch"], result["message"])
    if method.startswith("sessions.") and "session" in result:
        ledger.session(result["session"])
