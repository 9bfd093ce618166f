"""Tokens: which are accepted, what they say, and which keys may be used."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from midstream.server.config import Config, ConfigError
from midstream.server.connections.auth import TokenRefused, Tokens, authentication_of
from midstream.server.connections.keys import KeyFile, OnlyThese, Secret
from midstream.server.sessions.access import Identity

SECRET = "a secret that only the tests have, and long"  # noqa: S105 - of tests
NOW = 1_767_225_600_000
CLAIMS: dict[str, object] = {"sub": "alice", "exp": NOW // 1000 + 60}
ED = OKPKey.generate_key("Ed25519", parameters={"kid": "ed"})
EC = ECKey.generate_key("P-256", parameters={"kid": "ec"})
RSA = RSAKey.generate_key(2_048, parameters={"kid": "rsa"})


def signed(claims: dict[str, object], key: Any = None, **header: object) -> str:  # noqa: ANN401 - of joserfc
    """A token with these claims."""
    header = {"alg": "HS256", **header}
    algorithm = str(header["alg"])
    registry = OnlyThese((algorithm,))
    return jwt.encode(header, claims, key or OctKey.import_key(SECRET), registry=registry)


def tokens(**options: Any) -> Tokens:  # noqa: ANN401 - of Tokens
    """What accepts the tests' secret."""
    return Tokens([Secret(SECRET)], **options)


def write_keys(path: Path, *keys: dict[str, Any]) -> str:
    """Write a JWKS file."""
    path.write_text(json.dumps({"keys": keys}), "utf-8")
    return str(path)


def public(key: Any) -> dict[str, Any]:  # noqa: ANN401 - of joserfc
    """The public half, as JWK."""
    return dict(key.as_dict(private=False))


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({}, {"scopes": {"read", "write"}}),
        ({"scopes": ["read"]}, {"scopes": {"read"}}),
        ({"scopes": "read  internal strange"}, {"scopes": {"read", "internal"}}),
        ({"scopes": []}, {"scopes": set[str]()}),
        ({"scopes": ["agent"]}, {"scopes": {"agent", "read", "internal"}}),
        ({"scopes": ["admin"]}, {"scopes": {"read", "write", "internal", "agent", "admin"}}),
        ({"sessions": ["a", "b*"]}, {"sessions": ("a", "b*")}),
        ({"sessions": []}, {"sessions": ()}),
        ({"exp": NOW / 1000 + 0.5}, {"expires_at": NOW + 500}),
        ({"exp": 1e300}, {"expires_at": 2**53 // 1000 * 1000}),
        ({"nbf": NOW // 1000, "iat": NOW, "jti": "x", "aud": "z"}, {}),
    ],
)
def test_what_a_token_says(claims: dict[str, object], expected: dict[str, Any]) -> None:
    """Who, until when, which scopes, which sessions; what else it says means nothing."""
    usual = {"subject": "alice", "scopes": {"read", "write"}, "sessions": None, "expires_at": NOW + 60_000}
    expected = usual | expected
    expected["scopes"] = frozenset(expected["scopes"])
    assert tokens().verify(signed(CLAIMS | claims), NOW) == Identity(**expected)


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "ä" * 65},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"nbf": NOW // 1000 + 1},
        {"nbf": "later"},
        {"scopes": 7},
        {"scopes": [7]},
        {"sessions": "a"},
        {"sessions": [None]},
    ],
)
def test_claims_that_are_none_are_refused(claims: dict[str, object]) -> None:
    """Whatever is not what SPEC 10.6 says; and it is no case of getting a new one."""
    with pytest.raises(TokenRefused) as caught:
        tokens().verify(signed(CLAIMS | claims), NOW)
    assert not caught.value.expired


def test_a_token_is_good_until_its_end_and_not_after_it() -> None:
    """To the millisecond; there is no leeway here."""
    given = signed(CLAIMS)
    assert tokens().verify(given, NOW + 59_999).subject == "alice"
    with pytest.raises(TokenRefused) as caught:
        tokens().verify(given, NOW + 60_000)
    assert caught.value.expired


def test_an_issuer_and_an_audience_are_compared_where_they_are_expected() -> None:
    """The audience may be one of several."""
    strict = tokens(issuer="us", audience="chat")
    assert strict.verify(signed(CLAIMS | {"iss": "us", "aud": ["x", "chat"]}), NOW).subject
    for wrong in ({}, {"iss": "us"}, {"iss": "us", "aud": "other"}, {"iss": "them", "aud": "chat"}):
        with pytest.raises(TokenRefused):
            strict.verify(signed(CLAIMS | wrong), NOW)


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "given",
    [
        "",
        "..",
        "a.b.c",
        "é.é.é",
        "x" * 9_000,
        signed(CLAIMS)[:-2],
        signed(CLAIMS) + ".x",
        f"{_part({'alg': 'none'})}.{_part(CLAIMS)}.",
        f"{_part({'alg': 'HS256'})}.{_part(CLAIMS)}.",
        f"{_part({'alg': ['HS256']})}.{_part(CLAIMS)}.c2ln",
        f"{_part(['HS256'])}.{_part(CLAIMS)}.c2ln",
        signed(CLAIMS, alg="HS512"),
        signed(CLAIMS, OctKey.import_key("another secret of many many bytes, and long")),
        signed(CLAIMS, EC, alg="ES256"),
    ],
)
def test_what_is_no_good_signature_is_refused(given: str) -> None:
    """No algorithm but that of the key, and no way around it; the error has nothing of the token."""
    with pytest.raises(TokenRefused) as caught:
        tokens().verify(given, NOW)
    assert not given or given not in str(caught.value)
    assert not caught.value.expired


@pytest.mark.parametrize(
    ("key", "algorithm"), [(ED, "EdDSA"), (ED, "Ed25519"), (EC, "ES256"), (RSA, "RS256")]
)
def test_public_keys_verify_what_their_private_halves_signed(
    tmp_path: Path,
    key: Any,  # noqa: ANN401 - of joserfc
    algorithm: str,
) -> None:
    """With the kid in the header, or without; by no other algorithm."""
    path = write_keys(tmp_path / "keys.json", *map(public, (ED, EC, RSA)))
    accepted = Tokens([KeyFile(path)])
    for header in ({"kid": key.kid}, {}):
        assert accepted.verify(signed(CLAIMS, key, alg=algorithm, **header), NOW).subject == "alice"
    with pytest.raises(TokenRefused):
        accepted.verify(signed(CLAIMS, key, alg=algorithm, kid="unknown"), NOW)


def test_a_public_key_is_no_secret(tmp_path: Path) -> None:
    """The old attack: to sign by HS256 with the public key, which everybody knows."""
    accepted = Tokens([KeyFile(write_keys(tmp_path / "keys.json", public(RSA)))])
    for data in (RSA.as_pem(private=False), json.dumps(public(RSA)).encode()):
        header, payload = _part({"alg": "HS256", "kid": "rsa"}), _part(CLAIMS)
        mac = hmac.new(data, f"{header}.{payload}".encode(), hashlib.sha256).digest()
        forged = f"{header}.{payload}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
        with pytest.raises(TokenRefused):
            accepted.verify(forged, NOW)
    with pytest.raises(ConfigError, match="public key"):
        Secret(RSA.as_pem(private=False).decode())


def test_keys_are_rotated_by_replacing_the_file(tmp_path: Path) -> None:
    """Looked at once a second at most; a file that cannot be used changes nothing."""
    path = tmp_path / "keys.json"
    accepted = Tokens([KeyFile(write_keys(path, public(ED)))])
    old, new = signed(CLAIMS, ED, alg="EdDSA", kid="ed"), signed(CLAIMS, EC, alg="ES256", kid="ec")
    assert accepted.verify(old, NOW).subject
    write_keys(path, public(ED), public(EC))
    with pytest.raises(TokenRefused):
        accepted.verify(new, NOW + 999)
    assert accepted.verify(new, NOW + 1_000).subject
    path.write_text("{", "utf-8")
    assert accepted.verify(old, NOW + 2_000).subject
    write_keys(path, public(EC))
    assert accepted.verify(new, NOW + 3_000).subject
    with pytest.raises(TokenRefused):
        accepted.verify(old, NOW + 3_000)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ([ED.as_dict(private=True)], "private key"),
        ([{"kty": "oct", "k": "c2VjcmV0"}], "private key or a secret"),
        ([{"kty": "RSA", "e": "AQAB", "n": base64.urlsafe_b64encode(b"\xff" * 128).decode()}], "1024 bits"),
        ([{"kty": "RSA", "e": "AQAB", "n": 7}], "bits"),
        ([public(ECKey.generate_key("P-384"))], "no known kind"),
        ([{"kty": "XY"}], "no known kind"),
        ([public(EC) | {"use": "enc"}], "something else"),
        ([public(EC) | {"alg": "ES384"}], "something else"),
        ([public(EC) | {"x": "AA"}], "no valid EC key"),
        ([public(EC), public(ED) | {"kid": "ec"}], "two keys"),
        ([], "no key"),
    ],
)
def test_a_file_with_other_keys_is_refused_and_the_error_says_why(
    tmp_path: Path, keys: list[dict[str, Any]], problem: str
) -> None:
    """When the server starts; the error names the file, and has nothing of a key."""
    path = write_keys(tmp_path / "keys.json", *keys)
    with pytest.raises(ConfigError, match=problem) as caught:
        authentication_of(Config(token_keys=path))
    assert path in str(caught.value)
    assert str(keys[0].get("d", "-" * 99)) not in str(caught.value) if keys else True


@pytest.mark.parametrize("text", [None, "", "[]", '{"keys": 1}', '{"keys": [1]}', "{}"])
def test_a_file_that_is_no_key_set_is_refused(tmp_path: Path, text: str | None) -> None:
    """Also one that is not there."""
    path = tmp_path / "keys.json"
    if text is not None:
        path.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match="token_keys"):
        authentication_of(Config(token_keys=str(path)))


def test_a_short_secret_is_refused_and_is_not_shown() -> None:
    """Neither in the error nor where the settings are printed."""
    config = Config(token_secret="short-secret-of-31-bytes-xxxxxx")  # noqa: S106 - of this test
    with pytest.raises(ConfigError, match="32") as caught:
        authentication_of(config)
    assert "short-secret" not in str(caught.value) + repr(config)
    assert "token_secret='***'" in repr(config)


def test_without_settings_there_are_no_tokens() -> None:
    """As ever: everybody is local."""
    assert authentication_of(Config()) is None
