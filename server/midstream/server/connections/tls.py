"""The server's own TLS, from a certificate and its key (SPEC 13)."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from midstream.server.config import ConfigError

if TYPE_CHECKING:
    from midstream.server.config import Config


def tls_of(config: Config) -> ssl.SSLContext | None:
    """Return how connections are encrypted; None where the settings name no certificate.

    TLS 1.2 or newer, by Python's own choice of ciphers.

    Raises:
        ConfigError: the certificate or its key cannot be used.

    """
    if not config.tls_cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for setting, path in (("tls_cert", config.tls_cert), ("tls_key", config.tls_key)):
        try:
            with open(path, "rb"):  # noqa: PTH123 - to say which of the two it is; ssl does not
                pass
        except OSError as error:
            raise ConfigError(setting, f"cannot read {path!r}: {error.strerror}.") from None
    try:
        # a password would be asked for on the terminal, for ever where there is nobody
        context.load_cert_chain(config.tls_cert, config.tls_key, password=_no_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(
            "tls_cert",
            f"cannot use {config.tls_cert!r} with {config.tls_key!r}: {error}. Expected a certificate with "
            "its chain and its private key, both in PEM, the key without a password.",
        ) from None
    return context


def _no_password() -> str:
    message = "the key has a password"
    raise ValueError(message)
