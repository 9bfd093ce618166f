"""Laws of the page over HTTP: which file a request gets, and what a browser may do with it."""

import gzip
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

import pytest

from midstream.server.config import ConfigError
from midstream.server.connections import page_files
from midstream.server.connections.page import Answer, Page
from midstream.server.connections.page_files import read_files

SCRIPT = b"export const text = 'the same again and again';\n" * 100
FILES = {
    "index.html": b"<!doctype html>" + b"<p>hello</p>" * 100,
    "assets/index-3f2a.js": SCRIPT,
    "assets/font-77.woff2": b"wOF2" * 100,
    "robots.txt": b"none",
}
PAGE = Page(FILES)


def ask(path: str, method: str = "GET", headers: Mapping[str, str] = {}) -> Answer:
    """Ask the page, with these headers."""
    given = {"Host": "127.0.0.1:8787"} | dict(headers)
    return PAGE.answer(method, path, lambda name: given.get(name, ""))


@pytest.mark.parametrize(
    "path", ["/", "/index.html", "/s/", "/s/abc", "/s/a/b", "/s/../../secret", "/s/%2e%2e"]
)
def test_the_page_and_all_its_own_routes_are_the_index(path: str) -> None:
    """A link to a session opens the page, whatever the session is called."""
    answer = ask(path)
    assert (answer.status, answer.body) == (200, FILES["index.html"])
    assert dict(answer.headers)["Content-Type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/other.js",
        "/assets/",
        "/assets",
        "/assets/../index.html",
        "/../index.html",
        "//index.html",
        "/%69ndex.html",
        "/s",
        "index.html",
        "",
        "*",
        "http://127.0.0.1/",
    ],
)
def test_a_path_that_is_not_in_the_table_is_nothing(path: str) -> None:
    """Paths are compared as they come: there is nothing to decode, join or resolve."""
    assert ask(path).status == HTTPStatus.NOT_FOUND
    assert dict(ask(path).headers)["Cache-Control"] == "no-store"


@pytest.mark.parametrize(("path", "media_type"), [
    ("/assets/index-3f2a.js", "text/javascript; charset=utf-8"),
    ("/assets/font-77.woff2", "font/woff2"),
    ("/robots.txt", "text/plain; charset=utf-8"),
])  # fmt: skip
def test_every_file_has_its_type_which_nobody_guesses_anew(path: str, media_type: str) -> None:
    """A browser runs a script only by its type."""
    headers = dict(ask(path).headers)
    assert headers["Content-Type"] == media_type
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_only_what_never_changes_under_its_name_is_kept_without_asking() -> None:
    """An old index would ask for assets that are gone."""
    assert (
        dict(ask("/assets/index-3f2a.js").headers)["Cache-Control"] == "public, max-age=31536000, immutable"
    )
    for path in ("/", "/s/a", "/robots.txt"):
        assert dict(ask(path).headers)["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("accepted", ["gzip", "br, gzip", "GZIP;q=0.5", "*", "deflate, gzip; q=1.0"])
def test_who_takes_gzip_gets_gzip(accepted: str) -> None:
    """It is compressed once, when the server starts."""
    answer = ask("/assets/index-3f2a.js", headers={"Accept-Encoding": accepted})
    headers = dict(answer.headers)
    assert headers["Content-Encoding"] == "gzip"
    assert int(headers["Content-Length"]) == len(answer.body) < len(SCRIPT)
    assert gzip.decompress(answer.body) == SCRIPT
    assert headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("accepted", ["", "identity", "br", "gzip;q=0", "gzip; q=0.000, *", "*;q=0"])
def test_who_does_not_take_gzip_gets_the_file(accepted: str) -> None:
    """A cache in between is told that this depends on the request."""
    answer = ask("/assets/index-3f2a.js", headers={"Accept-Encoding": accepted})
    headers = dict(answer.headers)
    assert "Content-Encoding" not in headers
    assert answer.body == SCRIPT
    assert headers["Vary"] == "Accept-Encoding"


def test_what_gzip_makes_no_shorter_is_left_as_it_is() -> None:
    """A short file, and a format that is compressed already."""
    for path in ("/assets/font-77.woff2", "/robots.txt"):
        assert "Content-Encoding" not in dict(ask(path, headers={"Accept-Encoding": "gzip"}).headers)


@pytest.mark.parametrize("accepted", ["", "gzip"])
def test_who_has_the_file_already_gets_no_body(accepted: str) -> None:
    """Each form has a tag of its own, and a tag that is weak or one of many counts too."""
    first = dict(ask("/", headers={"Accept-Encoding": accepted}).headers)
    for wanted in (first["ETag"], f"W/{first['ETag']}", f'"other", {first["ETag"]}', "*"):
        answer = ask("/", headers={"Accept-Encoding": accepted, "If-None-Match": wanted})
        headers = dict(answer.headers)
        assert (answer.status, answer.body) == (304, b"")
        assert "Content-Length" not in headers
        assert {name: headers[name] for name in ("ETag", "Vary", "Cache-Control")} == {
            name: first[name] for name in ("ETag", "Vary", "Cache-Control")
        }
    other = "" if accepted else "gzip"
    assert (
        ask("/", headers={"Accept-Encoding": other, "If-None-Match": first["ETag"]}).status == HTTPStatus.OK
    )


def test_another_content_has_another_tag() -> None:
    """A new version of the page is seen at once."""
    tags = {
        dict(Page({"index.html": content}).answer("GET", "/", lambda _: "").headers)["ETag"]
        for content in (b"one", b"two")
    }
    assert len(tags) == 2


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get"])
def test_other_methods_are_told_which_there_are(method: str) -> None:
    """But what is not there is not there for any method."""
    answer = ask("/", method)
    assert answer.status == HTTPStatus.METHOD_NOT_ALLOWED
    assert dict(answer.headers)["Allow"] == "GET, HEAD"
    assert ask("/nothing", method).status == HTTPStatus.NOT_FOUND


def test_the_page_may_load_and_run_only_what_is_its_own() -> None:
    """Markup in a model's answer that slipped through would still find every door shut."""
    headers = dict(ask("/s/a").headers)
    policy = dict(
        directive.strip().split(" ", 1) for directive in headers["Content-Security-Policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "font-src": "'self'",
        "manifest-src": "'self'",
        "img-src": "'self' data: blob: https:",
        "connect-src": "'self' ws://127.0.0.1:8787 wss://127.0.0.1:8787",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "microphone=()" in headers["Permissions-Policy"]


@pytest.mark.parametrize("host", ["localhost; script-src *", "localhost/ https://evil.example", "", "a b"])
def test_a_host_that_is_none_opens_nothing(host: str) -> None:
    """The Host header is a stranger's text, and stands in the policy only where it is a plain name."""
    policy = dict(ask("/", headers={"Host": host}).headers)["Content-Security-Policy"]
    assert "connect-src 'self';" in policy
    assert "evil" not in policy


def test_a_folder_without_an_index_is_no_page() -> None:
    """The wrong folder is found when the server starts."""
    with pytest.raises(ConfigError, match=r"page: the folder has no index\.html"):
        Page({"assets/index.js": b""})


def test_a_folder_is_read_with_what_lies_below_and_nothing_else(tmp_path: Path) -> None:
    """Neither hidden files nor where links lead."""
    folder = tmp_path / "page"
    for name in ("index.html", "assets/a.js", ".env", ".git/config", "assets/.hidden"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "inner.js").symlink_to(folder / "assets" / "a.js")
    assert read_files(folder) == {
        "index.html": b"index.html",
        "assets/a.js": b"assets/a.js",
        "inner.js": b"assets/a.js",
    }


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error says which setting, which folder, and what to do."""
    with pytest.raises(
        ConfigError, match=r"page: .*nowhere cannot be read \(No such file or directory\)\. Name"
    ):
        read_files(tmp_path / "nowhere")


def test_a_folder_of_something_else_is_not_read_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever names their home folder learns it before all of it is read."""
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"12345")
    for limit, most in (("MOST_BYTES", 14), ("MOST_FILES", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(page_files, limit, most)
            with pytest.raises(ConfigError, match="holds more than"):
                read_files(tmp_path)
