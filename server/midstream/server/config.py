"""The server's configuration: every setting with its default, unit and reason.

A :class:`Config` is checked when it is made, so a wrong one never exists. Settings come from
keywords, from ``MIDSTREAM_*`` variables (:meth:`Config.from_env`), or from the command line's flags.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Literal, TypeAlias, get_type_hints

import msgspec
from msgspec import Meta, structs

from midstream.protocol.calls import Delivery
from midstream.protocol.limits import Limits
from midstream.server.inputs import DELIVERIES, AutoDelivery

ENV_PREFIX = "MIDSTREAM_"
LIMIT_PREFIX = "MIDSTREAM_LIMIT_"

LogFormat: TypeAlias = Literal["auto", "console", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

LIMIT_RANGES: Mapping[str, tuple[int, int]] = {
    "chunk_bytes": (1_024, 2**24),  # smaller chunks would be mostly header
    "nesting": (8, 64),  # the frames themselves need a few levels; deeper ones overflow the decoder's stack
    "page_messages": (1, 200),  # what the types of the calls allow
}
"""The least and the greatest value of limits that cannot be any positive integer."""


REMOTE = "remote"
"""The agent of a server whose turns are run by workers."""
NO_PAGE = "off"
"""The page of a server that serves none."""
NO_METRICS = "off"
"""The metrics of a server that gives none."""


class ConfigError(Exception):
    """A setting is wrong. The text names it, says what was expected, and what to do."""

    def __init__(self, setting: str, problem: str) -> None:
        """Name the setting as the user gave it: a variable, a keyword, a flag."""
        super().__init__(f"{setting}: {problem}")
        self.setting = setting


class BindRefused(ConfigError):
    """The host to listen on is not this machine's loopback, and there are no tokens, or no TLS."""

    def __init__(self, host: str, why: str) -> None:
        """Name the host, and what is missing."""
        super().__init__(
            "host",
            f"cannot listen on {host!r}, which is not a loopback address: {why}. Or listen on 127.0.0.1, ::1 "
            "or localhost, and let others in by a proxy.",
        )


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """How one server runs. Frozen; :func:`msgspec.structs.replace` makes another one, checked again.

    Raises:
        ConfigError: a value is wrong.

    """

    database: str = "midstream.db"
    """Path of the SQLite file; it is created where it is missing. One process owns it."""
    host: str = "127.0.0.1"
    """Address to listen on. One that is not loopback needs tokens and TLS, or a word that it goes without."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8_787
    """TCP port to listen on; 0 takes a free one."""
    agent: str = "demo"
    """Which agent answers: ``demo``, ``replay:DIR``, ``module:name``, or ``remote`` for workers."""
    lease_seconds: Annotated[float, Meta(gt=0)] = 30.0
    """Seconds that a turn waits for the worker that it lost, before it fails: a restart and a few tries."""
    offer_seconds: Annotated[float, Meta(gt=0)] = 30.0
    """Seconds that a turn waits for a first worker, before it fails."""
    takeover_seconds: Annotated[float, Meta(ge=0)] = 5.0
    """Seconds after which workers of another name may take a lost turn: less than that is a bad link."""
    heartbeat_ms: Annotated[int, Meta(ge=10, le=600_000)] = 15_000
    """Milliseconds of silence after which an end asks the other; after two it takes it for dead. Proxies cut
    idle connections after 30 to 60 s, and a phone's radio should not wake more often than needed."""
    tick_ms: Annotated[int, Meta(ge=0, le=1_000)] = 0
    """Milliseconds that two frames of one session's text are apart at least; what comes meanwhile is joined.
    0: while there is time for it, text leaves as it comes (a client that wants less asks for a pace)."""
    tick_limit_ms: Annotated[int, Meta(ge=0, le=1_000)] = 50
    """Milliseconds to which that grows under load, at most, since one write costs the same whatever it holds:
    20 a second still look like streaming. With 0 for both nothing is ever joined."""
    watch_ms: Annotated[int, Meta(ge=0, le=60_000)] = 100
    """Milliseconds in which changes of sessions are joined for those who watch the list: at once to the eye,
    and a session that is busy costs ten frames a second at most."""
    outbox_bytes: Annotated[int, Meta(ge=4_096)] = 1024 * 1024
    """High-water mark of an outbox, in bytes. Past it the connection's channels are behind and get
    one sync each when it is empty: about a second of a 10 Mbit/s line."""
    backlog_bytes: Annotated[int, Meta(ge=1024 * 1024)] = 48 * 1024 * 1024
    """Bytes that may wait in all outboxes and transports together. Above it each outbox has a mark of 16 KiB,
    and those who take nothing are cut: a thousand readers who never read could fill the memory in seconds."""
    lobby: Annotated[int, Meta(ge=1)] = 1_000
    """Connections that have not been welcomed yet, at a time. Where more come, the one that has waited
    longest goes: nobody knows who they are, and each takes 20 KiB."""
    compression: bool = True
    """Whether frames above 1 KiB are compressed (permessage-deflate) for clients that offer it: a page is a
    third as long, for 10 µs a KiB and no memory. Shorter frames, and so deltas, go as they are."""
    sync_seconds: Annotated[int, Meta(ge=1)] = 60
    """Seconds a connection may owe a sync before it is cut: by then its reader has stalled."""
    idle_seconds: Annotated[int, Meta(ge=0)] = 60
    """Seconds that a session stays loaded with nobody there and nothing to do: loading again is cheap."""
    history_bytes: Annotated[int, Meta(ge=0)] = 1024 * 1024
    """Bytes of recent changes that each loaded session keeps, from which a reader that missed a little is
    served without the disk. 0 keeps none: then every reconnect reads the changed messages."""
    drain_seconds: Annotated[int, Meta(ge=0)] = 10
    """Seconds that connections get to leave by themselves when the server drains."""
    auto_delivery: AutoDelivery = "absorb"
    """What becomes of input that comes while a turn runs and names no delivery: ``absorb`` (it waits, and the
    agent may take it in at a step boundary), ``queue``, ``reject`` or ``interrupt``. By default nothing is
    lost and nobody's turn is cut off."""
    deliveries: tuple[Delivery, ...] = DELIVERIES
    """The deliveries that callers may name; ``auto`` always may be. Where many write in one session, a host
    may want nobody to ``interrupt``."""
    log_format: LogFormat = "auto"
    """``console`` for people, ``json`` for machines; ``auto`` is ``console`` on a terminal."""
    log_level: LogLevel = "info"
    """The least level that is logged. No level up to ``info`` ever has the text of messages."""
    allowed_origins: tuple[str, ...] = ()
    """Origins (``https://chat.example.com``) whose pages may connect, besides loopback. A page on any
    other site is refused: a browser would let it reach this machine's loopback."""
    page: str = NO_PAGE
    """Folder of the page that is served at ``/``, read once when the server starts; ``off`` for none. The
    command ``midstream serve`` serves the chat page (``midstream.web``) where nothing else is said."""
    metrics: Literal["loopback", "off"] = "loopback"
    """Who gets ``/metrics``: programs of this machine and tokens of scope ``admin``, or nobody. They have no
    names and no text in them, but they say how busy a server is."""
    tracing: bool = False
    """Whether calls, turns, steps, loads and commits are spans of OpenTelemetry, to whatever provider the
    program has set up. Off, it costs nothing; on, some µs a span."""
    token_secret: str = ""
    """The secret by which tokens are signed (HS256), of 32 bytes at least. Keep it out of command lines and
    logs: ``midstream serve --token-secret-file`` reads it from a file. With it, or with ``token_keys``,
    nobody connects without a token."""
    token_keys: str = ""
    """Path of a JWKS file with the public keys by which tokens are signed (EdDSA, ES256, RS256). It is read
    again when it has changed, so keys are rotated by adding a new one, and later taking the old one out."""
    token_issuer: str = ""
    """What the ``iss`` of a token must be; empty: anything."""
    token_audience: str = ""
    """What the ``aud`` of a token must be, or hold; empty: anything."""
    tls_cert: str = ""
    """Path of the certificate, with its chain, in PEM. With ``tls_key`` the server speaks ``wss`` only."""
    tls_key: str = ""
    """Path of the certificate's private key, in PEM, without a password."""
    anyone_may_connect: bool = False
    """Says in words that a server without tokens may listen on other addresses than loopback: everybody who
    reaches it can read and write every conversation."""
    tls_ends_at_a_proxy: bool = False
    """Says in words that a server without TLS may listen on other addresses than loopback, because only a
    proxy that speaks TLS reaches it."""
    limits: Limits = Limits()
    """What clients are held to; sent to them in ``welcome.limits``."""

    def __post_init__(self) -> None:
        """Check every value."""
        for name, expected in _FIELDS.items():
            _checked(name, getattr(self, name), expected)
        if not isinstance(self.limits, Limits):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
            raise ConfigError("limits", f"is {self.limits!r}. Expected Limits(...), such as Limits(queue=8).")
        for name in Limits.__struct_fields__:
            _check_limit(f"limits.{name}", name, getattr(self.limits, name))
        if bool(self.tls_cert) != bool(self.tls_key):
            missing = "tls_key" if self.tls_cert else "tls_cert"
            raise ConfigError(missing, "is missing. Give the certificate and its key, or neither.")

    def __repr__(self) -> str:
        """Show every setting but the secret: settings stand in logs and tracebacks."""
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        shown["token_secret"] = "***" if self.token_secret else ""
        return f"Config({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def has_tokens(self) -> bool:
        """Whether who connects needs a token."""
        return bool(self.token_secret or self.token_keys)

    def check_host(self, host: str, *, has_tokens: bool = False) -> None:
        """Check that a server with these settings may listen on a host.

        Raises:
            BindRefused: it may not.

        """
        if is_loopback(host):
            return
        if not (has_tokens or self.has_tokens or self.anyone_may_connect):
            raise BindRefused(
                host,
                "without tokens anyone who can reach the port could read and write every conversation. Give "
                "token_secret or token_keys; or, if that is what you want, anyone_may_connect "
                "(--anyone-may-connect)",
            )
        if not (self.tls_cert or self.tls_ends_at_a_proxy):
            raise BindRefused(
                host,
                "without TLS everyone on the way could read the conversations and the tokens. Give tls_cert "
                "and tls_key (--cert, --key); or, if a proxy in front of the server speaks TLS, "
                "tls_ends_at_a_proxy (--tls-ends-at-a-proxy)",
            )

    @classmethod
    def from_env(cls, environ: Mapping[str, str], **overrides: object) -> Config:
        """Read ``MIDSTREAM_*`` variables; ``overrides`` that are not None win over them.

        Every setting is its name in capitals (``MIDSTREAM_PORT``), every limit likewise
        (``MIDSTREAM_LIMIT_QUEUE``); lists (``MIDSTREAM_ALLOWED_ORIGINS``) have commas between their items.
        Empty variables count as not set. Other variables are left alone, but not unknown limits: those
        are misspelled.

        Raises:
            ConfigError: names the variable, what it had, and what was expected.

        """
        given = {name: value for name, value in environ.items() if name.startswith(ENV_PREFIX) and value}
        settings: dict[str, object] = {"limits": _limits_from(given)}
        for name, expected in _FIELDS.items():
            variable = ENV_PREFIX + name.upper()
            if variable in given and overrides.get(name) is None:
                settings[name] = _checked(variable, _parsed(name, given[variable]), expected, strict=False)
        settings |= {name: value for name, value in overrides.items() if value is not None}
        return cls().changed(settings)

    @classmethod
    def misspelled(cls, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the ``MIDSTREAM_*`` variables that look like a setting's and are none, with that setting's.

        They are no error: other programs may have such variables too.
        """
        known = [name.upper() for name in cls.__struct_fields__ if name != "limits"]
        given = [name.removeprefix(ENV_PREFIX) for name in environ if name.startswith(ENV_PREFIX)]
        near = {name: get_close_matches(name, known, 1, cutoff=0.75) for name in given if name not in known}
        return {ENV_PREFIX + name: ENV_PREFIX + found[0] for name, found in near.items() if found}

    def changed(self, settings: Mapping[str, object]) -> Config:
        """Return a configuration with these settings in place of this one's.

        Raises:
            ConfigError: one is no setting, or has a wrong value.

        """
        unknown = settings.keys() - set(self.__struct_fields__)
        if unknown:
            raise ConfigError(min(unknown), f"is no setting; there are {', '.join(self.__struct_fields__)}")
        return structs.replace(self, **settings)


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach ``host``: ``localhost``, or a literal loopback address.

    Other names are not resolved: what they mean can change after the check.
    """
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761, section 6.3
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


_FIELDS: Mapping[str, object] = {
    name: hint
    for name, hint in get_type_hints(Config, include_extras=True).items()
    if name in Config.__struct_fields__ and name != "limits"
}


def _parsed(name: str, text: str) -> object:
    if name in {"allowed_origins", "deliveries"}:
        return [item.strip() for item in text.split(",") if item.strip()]
    return text.strip()


def _checked(setting: str, value: object, expected: object, *, strict: bool = True) -> object:
    try:
        return msgspec.convert(value, type=expected, strict=strict)
    except msgspec.ValidationError as error:
        said = "is of the wrong kind" if "secret" in setting.lower() else f"is {value!r}"
        raise ConfigError(setting, f"{said}. {_expectation(expected) or error}.") from None


def _expectation(expected: object) -> str:
    """Say in words what a setting may be, where its type says it; msgspec names types and not values."""
    info = msgspec.inspect.type_info(expected)
    if isinstance(info, msgspec.inspect.LiteralType):
        return f"Expected one of {', '.join(map(str, info.values))}"
    if isinstance(info, msgspec.inspect.VarTupleType) and isinstance(
        info.item_type, msgspec.inspect.LiteralType
    ):
        return f"Expected some of {', '.join(map(str, info.item_type.values))}, with commas between them"
    if isinstance(info, msgspec.inspect.BoolType):
        return "Expected true or false"
    if isinstance(info, msgspec.inspect.IntType):
        least = "" if info.ge is None else f" from {info.ge}"
        return f"Expected an integer{least}{'' if info.le is None else f' to {info.le}'}"
    return ""


def _limits_from(given: Mapping[str, str]) -> Limits:
    values: dict[str, int] = {}
    for variable, text in given.items():
        if not variable.startswith(LIMIT_PREFIX):
            continue
        name = variable.removeprefix(LIMIT_PREFIX).lower()
        if name not in Limits.__struct_fields__:
            known = ", ".join(LIMIT_PREFIX + field.upper() for field in Limits.__struct_fields__)
            raise ConfigError(variable, f"is no limit; there are {known}")
        try:
            values[name] = int(text)
        except ValueError:
            raise ConfigError(variable, f"is {text!r}. Expected an integer.") from None
        _check_limit(variable, name, values[name])
    return Limits(**values)


def _check_limit(setting: str, name: str, value: object) -> None:
    least, most = LIMIT_RANGES.get(name, (1, 2**53 - 1))
    if not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(setting, f"is {value!r}. Expected an integer from {least} to {most}.")
