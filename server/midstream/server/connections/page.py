"""The chat page over HTTP: which file a request gets, and what a browser may do with it (SPEC 3.1).

A page is a table of files that were read when the server started. A request is looked up in it and
nowhere else, so no path leads out of the folder. `/` and `/s/<anything>` are the page itself, whose
script reads the rest of the address; every other file has the path that it has in the folder.

Files below `/assets/` have a digest of their content in their names, so a browser may keep them for ever.
All others are asked for again each time, by their `ETag`, so a page of an older version is never shown.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from midstream.server.config import ConfigError

INDEX: Final = "index.html"
SESSION_PREFIX: Final = "/s/"
"""Where the page shows a session; what follows is for its script."""
ASSETS_PREFIX: Final = "/assets/"
"""Where files lie that never change under their name."""

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "jpg": "image/jpeg",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "map": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff2": "font/woff2",
}
_COMPRESSED: Final = frozenset({"ico", "jpg", "png", "webp", "woff2"})
"""What gzip makes no shorter."""
_HOST: Final = re.compile(r"[a-z0-9.\-]+(:\d+)?|\[[0-9a-f:.]+\](:\d+)?", re.IGNORECASE)

_SAFETY: Final = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    (
        "Permissions-Policy",
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
)


class Answer(NamedTuple):
    """An HTTP answer; the headers of the connection itself are not in it."""

    status: HTTPStatus
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _File(NamedTuple):
    headers: tuple[tuple[str, str], ...]
    forms: Mapping[str, tuple[str, bytes]]
    """By content coding: the ETag and the body; ``identity`` is always there."""


class Page:
    """What is served at a server's address, besides WebSockets."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """Take the files by their path in the folder, such as ``assets/index-3f2a.js``.

        Raises:
            ConfigError: there is no ``index.html``.

        """
        if INDEX not in files:
            raise ConfigError(
                "page", f"the folder has no {INDEX}. Name one that a page was built into, or off."
            )
        self._files = {f"/{path}": _file(path, content) for path, content in files.items()}
        self._files["/"] = self._index = self._files[f"/{INDEX}"]

    def answer(self, method: str, path: str, header: Callable[[str], str]) -> Answer:
        """Answer a request; ``header`` gives the value of one of its headers, empty where it has none."""
        file = self._index if path.startswith(SESSION_PREFIX) else self._files.get(path)
        if file is None:
            return refusal(HTTPStatus.NOT_FOUND, "This server has no such file. The page is at /.\n")
        if method not in {"GET", "HEAD"}:
            return refusal(
                HTTPStatus.METHOD_NOT_ALLOWED, "The page answers GET and HEAD.\n", ("Allow", "GET, HEAD")
            )
        coding = "gzip" if "gzip" in file.forms and _takes_gzip(header("Accept-Encoding")) else "identity"
        tag, body = file.forms[coding]
        headers = (
            *file.headers,
            ("ETag", tag),
            ("Content-Security-Policy", _policy(header("Host"))),
            *_SAFETY,
        )
        if _has(header("If-None-Match"), tag):
            return Answer(HTTPStatus.NOT_MODIFIED, headers, b"")
        if coding != "identity":
            headers += (("Content-Encoding", coding),)
        return Answer(HTTPStatus.OK, (*headers, ("Content-Length", str(len(body)))), body)


def refusal(status: HTTPStatus, text: str, *headers: tuple[str, str]) -> Answer:
    """Return an answer in words, which nothing keeps."""
    return _passing(status, _TYPES["txt"], text.encode(), *headers)


def document(status: HTTPStatus, content: object) -> Answer:
    """Return an answer in JSON, which nothing keeps."""
    return _passing(status, _TYPES["json"], msgspec.json.encode(content) + b"\n")


def _passing(status: HTTPStatus, media_type: str, body: bytes, *headers: tuple[str, str]) -> Answer:
    always = (
        ("Content-Type", media_type),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    )
    return Answer(status, (*always, *headers), body)


def _file(path: str, content: bytes) -> _File:
    suffix = path.rpartition(".")[2].lower()
    digest = hashlib.sha256(content).hexdigest()[:32]
    forms = {"identity": (f'"{digest}"', content)}
    if suffix not in _COMPRESSED:
        short = gzip.compress(content, 9, mtime=0)
        if len(short) < len(content):
            forms["gzip"] = (f'"{digest}-gzip"', short)
    is_hashed = f"/{path}".startswith(ASSETS_PREFIX)
    return _File(
        headers=(
            ("Content-Type", _TYPES.get(suffix, "application/octet-stream")),
            ("Cache-Control", "public, max-age=31536000, immutable" if is_hashed else "no-cache"),
            ("Vary", "Accept-Encoding"),
        ),
        forms=forms,
    )


def _policy(host: str) -> str:
    """Return what the page may load (Content-Security-Policy): its own files, and images of any safe address.

    Its script opens WebSockets to where it came from; some browsers do not count those as ``'self'`` and need
    the host. Styles stand in files: what a script sets on an element by itself needs no permission.
    """
    sockets = f" ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; manifest-src 'self'; "
        f"img-src 'self' data: blob: https:; connect-src 'self'{sockets}; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


def _takes_gzip(accepted: str) -> bool:
    """Say whether ``Accept-Encoding`` has gzip (RFC 9110, 12.5.3); a weight of 0 refuses it."""
    weights: dict[str, str] = {}
    for item in accepted.lower().split(","):
        coding, _, parameter = item.partition(";")
        weights[coding.strip()] = parameter.replace(" ", "")
    weight = weights.get("gzip", weights.get("*", "q=0"))
    return re.fullmatch(r"q=0(\.0*)?", weight) is None


def _has(wanted: str, tag: str) -> bool:
    """Say whether ``If-None-Match`` names this tag, weakly compared (RFC 9110, 13.1.2)."""
    tags = [item.strip().removeprefix("W/") for item in wanted.split(",")]
    return tag in tags or "*" in tags
