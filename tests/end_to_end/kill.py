"""``kill -9`` under load, again and again, on one database.

``python -m tests.end_to_end.kill [--cycles 100] [--seed 1]`` starts a server process, lets people and agents
work on it, kills it at a moment of chance, and starts it again on the same file; after each restart all that
anybody was told must be there. It prints what was killed when, and the totals.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random

from websockets.exceptions import WebSocketException

from midstream.client import Client, InputCancelled, Options, SessionState, TurnHandle
from midstream.client import Session as ClientSession
from midstream.protocol.calls import PromptResult, RespondResult, SessionResult, StopResult
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.errors import InteractionClosed, Refused
from midstream.protocol.merge import Replica
from midstream.protocol.model import ErrorPart, InteractionPart
from midstream.protocol.values import Value
from tests.end_to_end.ledger import Ledger
from tests.end_to_end.process import Died, ServerProcess
from tests.end_to_end.stage import QUICK, prompt_params
from tests.laws.line import Line, LineLost
from tests.laws.reader import Chronicle, Reader
from tests.proxy import Proxy, proxy_to

SESSIONS = ("a", "b", "c")
SETTINGS = {"tick_ms": 1, "heartbeat_ms": 120_000}
"""To prove replicas of a hundred cycles keeps this process busy for longer than a server usually waits."""
MOMENTS = ("outside", "outside", "write", "sync", "committed")
MOST_WAITING = 3


class NeverBack(Chronicle):
    """Holds one reader to G4: its version, and the revision of each message, never go back."""

    def __init__(self) -> None:
        super().__init__()
        self._version = 0
        self._revisions: dict[int, int] = {}

    def note(self, replica: Replica) -> None:
        """Look at a replica after something was applied to it."""
        assert replica.version >= self._version, f"from version {self._version} to {replica.version}"
        self._version = replica.version
        for message in replica.messages()[-3:]:
            before = self._revisions.get(message.sequence, 0)
            assert message.revision >= before, f"message {message.sequence} went back to {message.revision}"
            self._revisions[message.sequence] = message.revision


class Siege:
    """One database, the servers that are killed on it, and who goes on all the same."""

    moments: tuple[str, ...] = MOMENTS
    """When servers die."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.chance = Random(seed)
        self.ledger = Ledger(directory / "journal")
        self.deaths: Counter[str] = Counter()
        self._cut_off: dict[str, int] = {}
        self.path = directory / "chat.db"
        self._server: ServerProcess | None = None
        self._readers: list[Reader] = []
        self._handles: list[TurnHandle] = []
        self._client: Client
        self._proxy: Proxy
        self._mine: list[ClientSession] = []
        self._things = AsyncExitStack()
        self._prompts = 0

    @property
    def cut_off(self) -> int:
        """How many turns a kill has ended."""
        return sum(self._cut_off.values())

    @property
    def server(self) -> ServerProcess:
        """The server that runs now."""
        assert self._server is not None
        return self._server

    async def begin(self) -> None:
        """Start the first server, and let everybody join."""
        await self._start("")
        line = await self._line()
        for session_id in SESSIONS:
            await line.ask(SessionResult, "sessions.create", session_id=session_id)
            for codec in (MSGPACK, JSON):
                reader = Reader(
                    await self._line(codec), session_id, include_internal=True, chronicle=NeverBack()
                )
                await reader.join()
                self._readers.append(reader)
        self._proxy = await self._things.enter_async_context(proxy_to(self.server.url))
        client = Client(self._proxy.url, random=Random(7), options=Options(policy=QUICK))
        self._client = await self._things.enter_async_context(client)
        self._mine = [await client.session(session_id) for session_id in SESSIONS]
        await line.close()

    async def cycle(self, number: int) -> str:
        """Let everybody work until the server dies, start another, and reckon; say how it died."""
        moment, count = self.chance.choice(self.moments), self.chance.randint(1, 60)
        died = f"{moment} {count * 5 if moment == 'outside' else count}"
        try:
            if moment != "outside":
                await self.server.stop()
                await self._start(self.planned(moment, count))
            await self._rejoin()
            await self._work_until_death(count * 5 if moment == "outside" else None)
        except Died:
            died += ", in its start"
        self.deaths[moment] += 1
        for session in self._mine:
            await self._follow(session)
        await self._start("")
        await self._rejoin()
        await asyncio.gather(*(self._rest(reader) for reader in self._readers[::2]))
        await self._check()
        told = sum(self.ledger.totals().values())
        return f"cycle {number}: killed at {died}; so far {told} acknowledged, {self.cut_off} turns cut off"

    async def end(self) -> None:
        """End everything: each handle that the client gave out knows how it ended."""
        for handle in self._handles:
            with suppress(InputCancelled, Refused):
                turn = await handle.finished(timeout=60)
                assert turn.state != "running"
        for reader in self._readers:
            await reader.line.close()
        await self._things.aclose()
        await self.server.kill()

    # The server

    def planned(self, moment: str, count: int) -> str:
        """Say to a server when it is to die."""
        return f"{moment}:{count}"

    def found(self) -> None:
        """Do what is to be done before a server finds what the last one left."""

    async def _start(self, die_at: str) -> None:
        self.found()
        server = await ServerProcess.start(
            self.path, "work", die_at=die_at, journal=self.ledger.journal, **SETTINGS
        )
        self._server = server
        if self._mine:
            self._proxy.lead_to(server.url)

    async def _line(self, codec: Codec = MSGPACK) -> Line:
        try:
            return await Line.open(self.server.url, codec)
        except WebSocketException as error:
            raise ConnectionError("the server died") from error

    async def _rejoin(self) -> None:
        """Come back, each with its cursor. A server that is dead already, or dies now, is none to come to."""
        for reader in self._readers:
            with suppress(OSError, LineLost, EOFError):
                line = await self._line(reader.line.codec)
                await reader.line.close()
                await reader.rejoin(line)

    # Work

    async def _work_until_death(self, frames: int | None) -> None:
        """Let everybody work until the server has died; kill it after so many frames, if it is ours to."""
        server = self.server
        people = [asyncio.create_task(self._person(session_id)) for session_id in SESSIONS]
        people += [asyncio.create_task(self._follow(session)) for session in self._mine]
        if frames is not None:
            reader = self.chance.choice(self._readers)
            seen = len(reader.line.frames)
            await reader.line.until(lambda: len(reader.line.frames) >= seen + frames)
            await server.kill()
        assert await server.ended() == -signal.SIGKILL
        await server.kill()
        for person in people:
            person.cancel()
        for outcome in await asyncio.gather(*people, return_exceptions=True):
            if isinstance(outcome, Exception) and not isinstance(outcome, (LineLost, OSError, EOFError)):
                raise outcome

    async def _person(self, session_id: str) -> None:
        """Prompt, answer, stop, for ever; note what is acknowledged."""
        line = await self._line()
        try:
            reader = next(one for one in self._readers if one.session_id == session_id)
            while True:
                await reader.line.until(
                    lambda: waiting(reader) < MOST_WAITING or bool(pending(reader)) or not reader.line.is_open
                )
                await self._answer(line, reader)
                self._prompts += 1
                await self._prompt(line, session_id, f"{session_id}{self._prompts}")
                if self.chance.random() < 0.1:
                    stopped = await line.ask(StopResult, "stop", session_id=session_id, cancel_queue="none")
                    self.ledger.stop(session_id, stopped)
        finally:
            await line.close()

    async def _prompt(self, line: Line, session_id: str, message_id: str) -> None:
        text = self.ledger.prompts(session_id).setdefault(message_id, f"I am {message_id}")
        with suppress(Refused):
            params = prompt_params(text, session_id, message_id)
            self.ledger.accept(session_id, await line.ask(PromptResult, "prompt", **params))

    async def _answer(self, line: Line, reader: Reader) -> None:
        for part in pending(reader):
            decision = self.chance.choice(["approved", "denied"])
            response: Value = {"kind": "approval", "decision": decision}
            params = {"session_id": reader.session_id, "interaction_id": part.interaction_id}
            with suppress(InteractionClosed):
                answered = await line.ask(RespondResult, "respond", **params, response=response)
                self.ledger.answer(reader.session_id, answered.interaction)

    async def _follow(self, session: ClientSession) -> None:
        """Prompt now and then by the Python client, which keeps what it could not send."""
        handle = await session.prompt("From the client")
        self.ledger.prompts(session.session_id)[handle.message_id] = "From the client"
        self._handles.append(handle)

    # Rest, and the reckoning

    async def _rest(self, reader: Reader) -> None:
        """Send again what was not acknowledged in a session, and wait until nothing runs or waits."""
        line, session_id = await self._line(), reader.session_id
        accepted = self.ledger.accepted.setdefault(session_id, {})
        for message_id in list(self.ledger.prompts(session_id)):
            result = accepted.get(message_id)
            if result is None or result.state == "queued":
                await self._until_idle(line, reader)
                await self._again(line, session_id, message_id)
        await self._until_idle(line, reader)
        for message_id in self.chance.sample(sorted(accepted), min(5, len(accepted))):
            await self._again(line, session_id, message_id)
        await line.close()

    async def _again(self, line: Line, session_id: str, message_id: str) -> None:
        params = prompt_params(self.ledger.prompts(session_id)[message_id], session_id, message_id)
        self.ledger.accept(session_id, await line.ask(PromptResult, "prompt", **params))

    async def _until_idle(self, line: Line, reader: Reader) -> None:
        """Wait for the end of all turns, answering what is asked meanwhile."""
        while reader.replica.running_turn is not None or waiting(reader):
            version = reader.replica.version
            await self._answer(line, reader)
            await reader.line.until(lambda version=version: reader.replica.version > version)  # type: ignore[misc]  # bound

    async def _check(self) -> None:
        """Every reader equals one that has read everything anew, and everything acknowledged is there."""
        for session_id in SESSIONS:
            fresh = Reader(await self._line(), session_id, include_internal=True, limit=None)
            await fresh.join()
            await fresh.read_all(200)
            for reader in self._readers:
                if reader.session_id == session_id:
                    await reader.until_version(fresh.replica.version)
                    assert reader.content() == fresh.content()
                    assert (reader.gaps, reader.tags.count("reset")) == ([], 1)
                    await reader.prove()
            self.ledger.check(fresh.replica)
            self._cut_off[session_id] = sum(
                part.code == "runtime_interrupted"
                for message in fresh.replica.messages()
                for part in message.parts
                if isinstance(part, ErrorPart)
            )
            mine = next(one for one in self._mine if one.session_id == session_id)
            await mine.until(lambda mine=mine, fresh=fresh: same(mine, fresh))  # type: ignore[misc]  # bound
            await fresh.leave()


def same(mine: ClientSession, fresh: Reader) -> bool:
    """Say whether the Python client shows what a fresh reader does, as far as its window reaches."""
    state: SessionState = mine.state
    if state != "live":
        return False
    first = mine.messages[0].sequence if mine.messages else 1
    visible = [
        one for one in fresh.replica.messages() if one.visibility == "visible" and one.sequence >= first
    ]
    return mine.messages == visible


def waiting(reader: Reader) -> int:
    """Return how many inputs wait, as far as a reader knows."""
    return 0 if reader.replica.session is None else len(reader.replica.session.queue)


def pending(reader: Reader) -> list[InteractionPart]:
    """Return what is asked now, as far as a reader knows."""
    return [
        part
        for message in reader.replica.messages()[-6:]
        for part in message.parts
        if isinstance(part, InteractionPart) and part.status == "pending"
    ]


async def besiege(directory: Path, cycles: int, seed: int) -> Siege:
    """Run the cycles, and print a line for each."""
    siege = Siege(directory, seed)
    await siege.begin()
    for number in range(1, cycles + 1):
        sys.stdout.write(f"{await siege.cycle(number)}\n")
        sys.stdout.flush()
    await siege.end()
    return siege


def main() -> None:
    """Run as many cycles as asked for."""
    parser = argparse.ArgumentParser(description="kill -9 under load, again and again")
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        siege = asyncio.run(besiege(Path(directory), asked.cycles, asked.seed))
        sys.stdout.write(f"killed: {dict(siege.deaths)}, {siege.cut_off} turns cut off\n")
        sys.stdout.write(f"acknowledged: {dict(siege.ledger.totals())}\n")
        sys.stdout.write("nothing lost, no version back, all replicas equal\n")


if __name__ == "__main__":
    main()
