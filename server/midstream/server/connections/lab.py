"""The server's part of the link lab: the page may restart it, as `kill -9` would (`midstream serve --lab`).

- `GET /lab` tells the page what it may do here: `{"restart": true}`, or false where the lab is off.
- `GET /lab/restart` with the header `X-Midstream-Lab: restart` is answered by 202. Right after that the
  process is replaced by a new one: nothing is drained, ended or committed; the connections break. The new
  process has the same port and the same database.

No other page can ask for it: a browser sends a header of this kind to another origin only after a preflight,
which is refused here; and it says by `Sec-Fetch-Site`, which scripts cannot set, where a request comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from midstream.server.connections.page import Answer, document, refusal

LAB_PATH: Final = "/lab"
RESTART_PATH: Final = "/lab/restart"
HEADER: Final = "X-Midstream-Lab"


class Lab:
    """Answers what the link lab asks."""

    def __init__(self, *, restarts: bool) -> None:
        """Say whether the server may be restarted."""
        self._restarts = restarts

    def answer(self, method: str, path: str, header: Callable[[str], str]) -> Answer | None:
        """Answer a request, by 202 if the server is to restart now; None where it is for somebody else."""
        if path not in {LAB_PATH, RESTART_PATH} or (path == RESTART_PATH and not self._restarts):
            return None
        if method != "GET":
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, "The link lab answers GET.\n", ("Allow", "GET"))
        if path == LAB_PATH:
            return document(HTTPStatus.OK, {"restart": self._restarts})
        if header(HEADER) != "restart" or header("Sec-Fetch-Site") != "same-origin":
            return refusal(
                HTTPStatus.FORBIDDEN,
                f"Only the page of this server may restart it, with the header {HEADER}: restart.\n",
            )
        return document(HTTPStatus.ACCEPTED, {"restart": True})
