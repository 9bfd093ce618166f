"""Digests: how two copies prove that they are equal, and two requests that they are the same (SPEC 5.6).

All are SHA-256 over the canonical JSON form of RFC 8785, so that any language gives the same.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, cast

import msgspec
import rfc8785

from midstream.protocol.errors import InvalidRequest

if TYPE_CHECKING:
    from midstream.protocol.model import Message
    from midstream.protocol.values import Value


def canonical(value: Value) -> bytes:
    """Return the RFC 8785 form of a value: keys sorted, numbers as ECMAScript writes them, UTF-8.

    An integral float and the equal integer have the same form: JSON does not tell them apart.

    Raises:
        InvalidRequest: the value is not one that the protocol carries.

    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise InvalidRequest("", f"has no canonical form: {error}") from error


def message_digest(message: Message) -> str:
    """Return the first 16 hex digits of the SHA-256 of the message as it stands in a page."""
    return sha256(canonical(cast("Value", msgspec.to_builtins(message)))).hexdigest()[:16]


def content_hash(parts: Value) -> str:
    """Return the SHA-256, in hex, of the ``parts`` of a prompt as they were sent.

    Unknown keys count: a repeat of the same bytes is always the same content.
    """
    return sha256(canonical(parts)).hexdigest()
