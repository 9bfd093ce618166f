"""Laws of the link lab's address: the page of this server may restart it, and nobody else."""

from http import HTTPStatus

import pytest

from midstream.server.connections.lab import Lab
from midstream.server.connections.page import Answer

ASKED = {"X-Midstream-Lab": "restart", "Sec-Fetch-Site": "same-origin"}


def ask(path: str, headers: dict[str, str], method: str = "GET", *, restarts: bool = True) -> Answer | None:
    """Ask the lab."""
    return Lab(restarts=restarts).answer(method, path, lambda name: headers.get(name, ""))


def test_the_page_of_this_server_may_restart_it() -> None:
    """Its script sets the header, and the browser says that it is of the same origin."""
    answer = ask("/lab/restart", ASKED)
    assert answer
    assert answer.status == HTTPStatus.ACCEPTED


@pytest.mark.parametrize(
    "wrong",
    [
        {"X-Midstream-Lab": ""},
        {"X-Midstream-Lab": "1"},
        {"Sec-Fetch-Site": ""},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-origin, same-origin"},
    ],
)
def test_neither_another_page_nor_an_address_that_is_opened_restarts_it(wrong: dict[str, str]) -> None:
    """A link, an image or a form sets no header; a script of another page is not of the same origin."""
    answer = ask("/lab/restart", ASKED | wrong)
    assert answer
    assert answer.status == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS"])
def test_a_preflight_is_refused(method: str) -> None:
    """So no script of another origin gets as far as to send the header."""
    answer = ask("/lab/restart", ASKED, method)
    assert answer
    assert answer.status == HTTPStatus.METHOD_NOT_ALLOWED
    assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]


def test_without_the_switch_there_is_no_restart_and_the_page_is_told() -> None:
    """The page asks before it shows the button; an answer of 404 would be an error in its console."""
    assert ask("/lab/restart", ASKED, restarts=False) is None
    for restarts, body in ((True, b'{"restart":true}\n'), (False, b'{"restart":false}\n')):
        answer = ask("/lab", {}, restarts=restarts)
        assert answer
        assert (answer.status, answer.body) == (200, body)
    assert ask("/", {}) is None
