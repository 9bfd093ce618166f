"""The keys by which tokens are verified: a shared secret, or a file of public keys (SPEC 10.6).

What a key is decides by which algorithm its tokens are signed; what a token says of it only has to agree.
Imports joserfc, which comes with the extra ``tokens``.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec
import structlog
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from midstream.server.config import ConfigError

if TYPE_CHECKING:
    from joserfc.jwk import Key

LEAST_SECRET_BYTES: Final = 32
"""HS256 signs with SHA-256: a shorter secret would be easier to guess than a signature (RFC 7518, 3.2)."""
LEAST_RSA_BITS: Final = 2_048
"""RFC 7518, 3.3."""
MOST_FILE_BYTES: Final = 1024 * 1024
CHECK_MS: Final = 1_000
"""How often the file is looked at, at most."""
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})

_log = structlog.stdlib.get_logger(__name__)


class VerifyingKey(NamedTuple):
    """One key, and all that a token may say of how it was signed with it."""

    key: Key
    algorithms: tuple[str, ...]
    kid: str | None = None


class OnlyThese(JWSRegistry):
    """Verifies by the algorithms of one key, whatever others joserfc knows."""

    def __init__(self, algorithms: tuple[str, ...]) -> None:
        """Allow these."""
        super().__init__(algorithms=algorithms, strict_check_header=False)

    def get_alg(self, name: str):  # type: ignore[no-untyped-def]  # noqa: ANN201 - the type is not public
        """Return the algorithm of this name; without joserfc's warning that EdDSA has a newer name."""
        if self.allowed is None or name not in self.allowed:
            message = "the algorithm is not that of the key"
            raise UnsupportedAlgorithmError(message)
        return self.algorithms[name]


class Secret:
    """One secret that the server shares with who makes tokens."""

    def __init__(self, secret: str) -> None:
        """Take the secret as UTF-8.

        Raises:
            ConfigError: it is too short, or is no secret.

        """
        data = secret.encode()
        if len(data) < LEAST_SECRET_BYTES:
            raise ConfigError(
                "token_secret",
                f"has {len(data)} bytes. Expected at least {LEAST_SECRET_BYTES}, random, for example from: "
                "openssl rand -base64 48",
            )
        try:
            self._keys = [VerifyingKey(OctKey.import_key(data), ("HS256",))]
        except (ValueError, JoseError):
            raise ConfigError(
                "token_secret", "is a public key, which is no secret. Give it as a JWKS file: token_keys."
            ) from None

    def current(self, wall_ms: int) -> list[VerifyingKey]:  # noqa: ARG002 - files may change, this does not
        """Return the key."""
        return self._keys


class KeyFile:
    """A file of public keys, which may be replaced while the server runs: so keys are rotated."""

    def __init__(self, path: str) -> None:
        """Read the file.

        Raises:
            ConfigError: it cannot be read, or holds what is no public key of a known kind.

        """
        self._path = Path(path)
        self._checked_at: int | None = None
        self._seen = self._stamp()
        self._keys = self._read()

    def current(self, wall_ms: int) -> list[VerifyingKey]:
        """Return the keys; from the file as it is now, where it was not looked at for a second.

        A file that cannot be used changes nothing, and is logged.
        """
        if self._checked_at is None or abs(wall_ms - self._checked_at) >= CHECK_MS:
            self._checked_at = wall_ms
            self._look()
        return self._keys

    def _look(self) -> None:
        try:
            seen = self._stamp()
            if seen == self._seen:
                return
            self._keys = self._read()
            self._seen = seen
        except ConfigError as error:
            _log.error("token_keys_unusable", error=str(error))
        else:
            _log.info("token_keys_read", keys=[one.kid for one in self._keys])

    def _stamp(self) -> tuple[int, int, int]:
        try:
            status = self._path.stat()
        except OSError as error:
            raise self._wrong(f"cannot be read: {error.strerror}") from None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> list[VerifyingKey]:
        try:
            data = self._path.read_bytes()
        except OSError as error:
            raise self._wrong(f"cannot be read: {error.strerror}") from None
        if len(data) > MOST_FILE_BYTES:
            raise self._wrong(f"has {len(data)} bytes; there may be {MOST_FILE_BYTES}")
        try:
            keys = msgspec.json.decode(data, type=dict[str, list[dict[str, object]]])["keys"]
        except (msgspec.DecodeError, KeyError, UnicodeError, RecursionError):
            raise self._wrong('is no JWKS. Expected {"keys": [...]} with public keys (RFC 7517)') from None
        read = [self._key(number, one) for number, one in enumerate(keys)]
        if not read:
            raise self._wrong("has no key: nobody could connect")
        kids = [one.kid for one in read]
        if len(set(kids)) < len(kids):
            raise self._wrong("has two keys with one kid, or two without: give each a kid of its own")
        return read

    def _key(self, number: int, jwk: dict[str, object]) -> VerifyingKey:
        place = f"keys[{number}]"
        kind, curve, kid = jwk.get("kty"), jwk.get("crv"), jwk.get("kid")
        if kid is not None and not isinstance(kid, str):
            raise self._wrong(f"{place} has a kid that is no string")
        if kind == "oct" or _PRIVATE & jwk.keys():
            raise self._wrong(f"{place} is a private key or a secret. Only public keys may stand here")
        algorithms: tuple[str, ...]
        if (kind, curve) == ("OKP", "Ed25519"):
            kinds: type[ECKey | OKPKey | RSAKey] = OKPKey
            algorithms = ("EdDSA", "Ed25519")  # RFC 9864 gave it the newer name
        elif (kind, curve) == ("EC", "P-256"):
            kinds, algorithms = ECKey, ("ES256",)
        elif kind == "RSA":
            kinds, algorithms = RSAKey, ("RS256",)
        else:
            raise self._wrong(
                f"{place} is of no known kind. Expected OKP with Ed25519, EC with P-256, or RSA"
            )
        if jwk.get("use", "sig") != "sig" or jwk.get("alg", algorithms[0]) not in algorithms:
            raise self._wrong(f"{place} is for something else than {' or '.join(algorithms)} signatures")
        bits = _bits(jwk.get("n")) if kind == "RSA" else LEAST_RSA_BITS
        if bits < LEAST_RSA_BITS:
            raise self._wrong(f"{place} has {bits} bits. Expected at least {LEAST_RSA_BITS}")
        try:
            key = kinds.import_key(cast("dict[str, str | list[str]]", jwk))
            _ = key.public_key
        except (JoseError, ValueError, TypeError, KeyError):
            raise self._wrong(f"{place} is no valid {kind} key") from None
        return VerifyingKey(key, algorithms, kid)

    def _wrong(self, problem: str) -> ConfigError:
        return ConfigError("token_keys", f"the file {str(self._path)!r} {problem}.")


def _bits(modulus: object) -> int:
    """Return the length of the modulus of an RSA key; 0 for what is none."""
    try:
        return int.from_bytes(urlsafe_b64decode(f"{modulus}==")).bit_length()
    except ValueError:
        return 0
