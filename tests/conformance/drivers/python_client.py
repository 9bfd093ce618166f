"""The Python client behind the lines of JSON of docs/conformance.md; run it with `python -m`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Literal, cast

import msgspec

from midstream.client import Client, MidstreamError, Options, Policy, Session, SessionList, TurnHandle
from midstream.protocol.calls import Delivery
from midstream.protocol.digest import message_digest

CAN = ["scale", "internal", "pages", "verify", "respond", "stop", "list", "tokens"]
Told = dict[str, object]


class UnderTest:
    """One client, from ``connect`` to ``close``."""

    def __init__(
        self, url: str, encoding: Literal["msgpack", "json"], scale: float, tokens: list[str]
    ) -> None:
        """Prepare to connect; all pauses of the client are multiplied by ``scale``."""

        def token() -> str:
            return tokens.pop(0) if len(tokens) > 1 else tokens[0]

        policy = Policy(backoff_s=0.5 * scale, backoff_limit_s=30 * scale, stable_s=10 * scale)
        self._client = Client(url, token if tokens else None, encoding, options=Options(policy=policy))
        self._sessions: dict[str, Session] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._handles: dict[str, dict[str, TurnHandle]] = {}
        self._failed: dict[str, str] = {}
        self._list: SessionList | None = None

    async def begin(self) -> None:
        """Begin to connect."""
        await self._client.__aenter__()

    async def open(self, told: Told) -> Told:
        """Open a session, without waiting for it."""
        session_id = str(told["session"])

        async def opening() -> None:
            try:
                await self._client.session(
                    session_id,
                    create=bool(told.get("create")),
                    limit=int(str(told["limit"])),
                    include_internal=bool(told.get("include_internal")),
                    timeout=None,
                )
            except MidstreamError as error:
                self._failed[session_id] = error.code

        task = asyncio.create_task(opening())
        self._opening.add(task)
        await asyncio.sleep(0)  # it is there from its first step on
        self._sessions[session_id] = self._client._sessions[session_id]  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - it is shown before it is live, which no public name does
        return {}

    async def state(self, told: Told) -> Told:
        """Say what is shown."""
        session_id = str(told["session"])
        session = self._sessions[session_id]
        law = session._law  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - the epoch has no public name
        error = session.error or self._client.error
        shown: Told = {
            "state": session.state,
            "link": self._client.state,
            "error": error.code if error else self._failed.get(session_id),
            "prompts": {name: handle.state for name, handle in self._handles.get(session_id, {}).items()},
        }
        if law.session is not None:
            shown |= {
                "version": session.version,
                "epoch": law.epoch,
                "has_earlier": session.has_earlier,
                "session": session.info,
                "turns": list(session.turns.values()),
                "digests": [(one.sequence, one.revision, message_digest(one)) for one in session.messages],
            }
        return shown

    async def page(self, told: Told) -> Told:
        """Load earlier messages."""
        return {"more": await self._session(told).load_earlier(int(str(told["limit"])))}

    async def verify(self, told: Told) -> Told:
        """Compare with the server."""
        return {"equal": bool(await self._session(told).verify())}

    async def prompt(self, told: Told) -> Told:
        """Hand in a prompt, without waiting for its answer."""
        message_id, delivery = str(told["message_id"]), cast("Delivery", told.get("delivery", "auto"))
        handle = await self._session(told).prompt(str(told["text"]), message_id=message_id, delivery=delivery)
        self._handles.setdefault(str(told["session"]), {})[message_id] = handle
        return {}

    async def respond(self, told: Told) -> Told:
        """Approve an interaction."""
        await self._session(told).approve(str(told["interaction_id"]))
        return {}

    async def stop(self, told: Told) -> Told:
        """Stop a turn."""
        return {"stopped": (await self._session(told).stop(str(told["turn_id"]))).stopped}

    async def leave(self, told: Told) -> Told:
        """Follow a session no longer."""
        await self._session(told).close()
        return {}

    async def watch(self, told: Told) -> Told:
        """Watch the list of sessions."""
        self._list = self._client.watch_sessions(int(str(told["limit"])))
        return {}

    async def list(self, told: Told) -> Told:
        """Say what the list shows."""
        del told
        shown = self._list
        if shown is None:
            return {"state": "closed"}
        return {"state": shown.state, "items": [(one.session_id, one.revision) for one in shown.items]}

    async def more(self, told: Told) -> Told:
        """Load the next page of the list."""
        del told
        return {} if self._list is None else {"more": await self._list.load_more()}

    async def end(self) -> None:
        """Close the client."""
        await self._client.close()
        await asyncio.gather(*self._opening)

    def _session(self, told: Told) -> Session:
        return self._sessions[str(told["session"])]


class Program:
    """Reads instructions and answers each; one client at a time."""

    def __init__(self) -> None:
        """Begin without a client."""
        self._client: UnderTest | None = None

    async def run(self) -> None:
        """Serve until the input ends."""
        self._say({"ready": f"midstream-python {version('midstream')}", "can": CAN})
        reader = asyncio.StreamReader(limit=2**26)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        under_way: set[asyncio.Task[None]] = set()
        while line := await reader.readline():
            task = asyncio.create_task(self._carry_out(json.loads(line)))
            under_way.add(task)
            task.add_done_callback(under_way.discard)

    async def _carry_out(self, told: Told) -> None:
        try:
            done = await self._do(told)
            self._say({"id": told["id"], "ok": done})
        except MidstreamError as error:
            self._say({"id": told["id"], "error": error.code})

    async def _do(self, told: Told) -> Told:
        do = str(told["do"])
        if do == "connect":
            encoding = cast('Literal["msgpack", "json"]', told["encoding"])
            self._client = UnderTest(
                str(told["url"]),
                encoding,
                float(str(told["scale"])),
                cast("list[str]", told["tokens"]),
            )
            await self._client.begin()
            return {}
        client = self._client
        if client is None:
            return {}
        if do == "close":
            self._client = None
            await client.end()
            return {}
        carry_out = cast("Callable[[Told], Awaitable[Told]]", getattr(client, do))
        return await carry_out(told)

    def _say(self, answer: Told) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


def main() -> None:
    """Run the program."""
    asyncio.run(Program().run())


if __name__ == "__main__":
    main()
