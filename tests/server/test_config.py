"""Laws of the configuration: a wrong one never exists, and its error says what to do."""

import msgspec
import pytest

from midstream.protocol.limits import Limits
from midstream.server.config import BindRefused, Config, ConfigError, is_loopback
from midstream.server.server import Server


def test_without_settings_everything_has_a_default() -> None:
    """An empty environment gives the same as no arguments."""
    assert Config.from_env({}) == Config()
    assert Config().limits == Limits()


def test_every_setting_is_read_from_its_variable() -> None:
    """The variable is the setting's name in capitals; integers, words and lists are understood."""
    given = {
        "MIDSTREAM_DATABASE": "chat.db",
        "MIDSTREAM_HOST": "::1",
        "MIDSTREAM_PORT": "0",
        "MIDSTREAM_AGENT": "replay:streams",
        "MIDSTREAM_HEARTBEAT_MS": "5000",
        "MIDSTREAM_TOKEN_SECRET": "a secret of many bytes, and more of them",
        "MIDSTREAM_TOKEN_KEYS": "keys.json",
        "MIDSTREAM_TOKEN_ISSUER": "https://login.example.com",
        "MIDSTREAM_TOKEN_AUDIENCE": "chat",
        "MIDSTREAM_TLS_CERT": "cert.pem",
        "MIDSTREAM_TLS_KEY": "key.pem",
        "MIDSTREAM_ANYONE_MAY_CONNECT": "true",
        "MIDSTREAM_TLS_ENDS_AT_A_PROXY": "true",
        "MIDSTREAM_TICK_MS": "5",
        "MIDSTREAM_TICK_LIMIT_MS": "20",
        "MIDSTREAM_OUTBOX_BYTES": "65536",
        "MIDSTREAM_SYNC_SECONDS": "30",
        "MIDSTREAM_IDLE_SECONDS": "5",
        "MIDSTREAM_HISTORY_BYTES": "0",
        "MIDSTREAM_DRAIN_SECONDS": "0",
        "MIDSTREAM_AUTO_DELIVERY": "queue",
        "MIDSTREAM_DELIVERIES": "queue, reject",
        "MIDSTREAM_LOG_FORMAT": "json",
        "MIDSTREAM_LOG_LEVEL": "debug",
        "MIDSTREAM_ALLOWED_ORIGINS": "https://a.example, https://b.example",
        "MIDSTREAM_PAGE": "folder",
        "MIDSTREAM_LEASE_SECONDS": "2.5",
        "MIDSTREAM_OFFER_SECONDS": "3",
        "MIDSTREAM_TAKEOVER_SECONDS": "0",
        "MIDSTREAM_WATCH_MS": "50",
        "MIDSTREAM_COMPRESSION": "false",
        "MIDSTREAM_METRICS": "off",
        "MIDSTREAM_BACKLOG_BYTES": "2000000",
        "MIDSTREAM_LOBBY": "20",
        "MIDSTREAM_TRACING": "true",
        "MIDSTREAM_LIMIT_QUEUE": "7",
        "MIDSTREAM_LIMIT_FRAME_BYTES": "2000000",
        "PORT": "1",
    }
    assert Config.from_env(given) == Config(
        database="chat.db",
        host="::1",
        port=0,
        agent="replay:streams",
        heartbeat_ms=5_000,
        token_secret="a secret of many bytes, and more of them",  # noqa: S106 - of this test
        token_keys="keys.json",  # noqa: S106 - likewise
        token_issuer="https://login.example.com",  # noqa: S106 - likewise
        token_audience="chat",  # noqa: S106 - likewise
        tls_cert="cert.pem",
        tls_key="key.pem",
        anyone_may_connect=True,
        tls_ends_at_a_proxy=True,
        tick_ms=5,
        tick_limit_ms=20,
        watch_ms=50,
        outbox_bytes=65_536,
        backlog_bytes=2_000_000,
        lobby=20,
        compression=False,
        metrics="off",
        tracing=True,
        sync_seconds=30,
        idle_seconds=5,
        history_bytes=0,
        drain_seconds=0,
        auto_delivery="queue",
        deliveries=("queue", "reject"),
        page="folder",
        lease_seconds=2.5,
        offer_seconds=3,
        takeover_seconds=0,
        log_format="json",
        log_level="debug",
        allowed_origins=("https://a.example", "https://b.example"),
        limits=Limits(queue=7, frame_bytes=2_000_000),
    )
    named = {name.removeprefix("MIDSTREAM_").lower() for name in given}
    assert set(Config.__struct_fields__) - named == {"limits"}


def test_an_override_wins_over_a_variable_and_none_does_not() -> None:
    """A flag that was not given is None."""
    given = {"MIDSTREAM_PORT": "9000", "MIDSTREAM_HOST": "localhost"}
    config = Config.from_env(given, port=9001, host=None)
    assert (config.port, config.host) == (9001, "localhost")


def test_an_override_hides_a_wrong_variable() -> None:
    """What is not used is not judged."""
    assert Config.from_env({"MIDSTREAM_PORT": "many"}, port=9001).port == 9001


def test_an_empty_variable_counts_as_not_set() -> None:
    """That is how a shell or a compose file leaves a variable out."""
    assert Config.from_env({"MIDSTREAM_PORT": "", "MIDSTREAM_LIMIT_QUEUE": ""}) == Config()


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("MIDSTREAM_PORT", "many", "int"),
        ("MIDSTREAM_PORT", "65536", "an integer from 0 to 65535"),
        ("MIDSTREAM_PORT", "-1", "from 0"),
        ("MIDSTREAM_HEARTBEAT_MS", "0", "from 10"),
        ("MIDSTREAM_OUTBOX_BYTES", "1", "an integer from 4096"),
        ("MIDSTREAM_TICK_MS", "1.5", "int"),
        ("MIDSTREAM_LOG_FORMAT", "xml", "auto, console, json"),
        ("MIDSTREAM_LOG_LEVEL", "loud", "debug, error, info, warning"),
        ("MIDSTREAM_AUTO_DELIVERY", "auto", "absorb, interrupt, queue, reject"),
        ("MIDSTREAM_DELIVERIES", "queue, rejcet", "some of auto, interrupt, queue, reject"),
        ("MIDSTREAM_LIMIT_QUEUE", "few", "integer"),
        ("MIDSTREAM_LIMIT_QUEUE", "0", "from 1"),
        ("MIDSTREAM_LIMIT_NESTING", "65", "from 8 to 64"),
        ("MIDSTREAM_LIMIT_PAGE_MESSAGES", "201", "from 1 to 200"),
        ("MIDSTREAM_LIMIT_QEUE", "5", "MIDSTREAM_LIMIT_QUEUE"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(variable: str, value: str, expected: str) -> None:
    """The error begins with the variable, so that it can be found."""
    with pytest.raises(ConfigError) as caught:
        Config.from_env({variable: value})
    assert caught.value.setting == variable
    assert str(caught.value).startswith(f"{variable}: ")
    assert expected in str(caught.value)


def test_a_misspelled_variable_is_found_and_others_are_left_alone() -> None:
    """Other programs may have variables with the same beginning; a name close to a setting's is a slip."""
    environ = {"MIDSTREAM_PROT": "1", "MIDSTREAM_PORT": "2", "MIDSTREAM_SPEED": "3", "MIDSTREAM_DATABSE": "4"}
    assert Config.misspelled(environ) == {
        "MIDSTREAM_PROT": "MIDSTREAM_PORT",
        "MIDSTREAM_DATABSE": "MIDSTREAM_DATABASE",
    }


def test_a_setting_that_does_not_exist_is_refused() -> None:
    """A misspelled keyword is not ignored."""
    with pytest.raises(ConfigError, match="prot: is no setting"):
        Config.from_env({}, prot=1)
    with pytest.raises(ConfigError, match="prot: is no setting"):
        Server(prot=1)


def test_a_wrong_keyword_is_refused_like_a_wrong_variable() -> None:
    """A configuration is checked however it was made, and when it is changed."""
    with pytest.raises(ConfigError, match="port"):
        Config(port=70_000)
    with pytest.raises(ConfigError, match=r"limits\.nesting"):
        Config(limits=Limits(nesting=1_000))
    with pytest.raises(ConfigError, match=r"limits: .* Expected Limits"):
        Server(limits={"queue": 3})
    with pytest.raises(ConfigError, match="port"):
        msgspec.structs.replace(Config(), port=70_000)


OTHERS = ["0.0.0.0", "::", "192.168.1.5", "example.com", "127.0.0.1.example.com", ""]  # noqa: S104 - are refused


@pytest.mark.parametrize("host", OTHERS)
def test_a_host_that_others_can_reach_is_refused_and_the_error_says_why(host: str) -> None:
    """There are no tokens, so there is nothing else to keep strangers out."""
    with pytest.raises(BindRefused) as caught:
        Config().check_host(host)
    assert "without tokens anyone" in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost", "LOCALHOST", "app.localhost"])
def test_loopback_in_every_spelling_is_allowed(host: str) -> None:
    """Only this machine reaches it."""
    assert is_loopback(host)
    assert Config(host=host).host == host
