"""Talks to a session: what is typed goes to the agent, what happens is shown, questions are answered."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from midstream.cli.answers import Dialog, NoAnswer
from midstream.cli.pieces import Line, Piece, Tone, clean
from midstream.cli.render import Transcript
from midstream.cli.typed import HELP, Command, Unknown, Words, read_line
from midstream.client.errors import InputCancelled, MidstreamError
from midstream.protocol.model import InteractionPart

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from midstream.cli.screen import Screen
    from midstream.client.session import Session
    from midstream.client.turns import TurnHandle
    from midstream.protocol.model import ApprovalMode, InteractionResponse, TurnPhase

EARLIER = 20
"""Messages that ``/earlier`` shows."""
_MODES: dict[str, ApprovalMode] = {"always": "always-allow", "ask": "ask"}
"""What can be typed after ``/approvals``."""
_PHASES: dict[TurnPhase, str] = {
    "starting": "the agent starts",
    "waiting-model": "the agent thinks",
    "streaming": "the agent writes",
    "running-tool": "a tool runs",
    "waiting-user": "the agent waits for you",
}


class Chat:
    """One person at one session.

    What takes a while (a prompt until its turn is over, an answer, a stop) is done beside the rest,
    so that the next line can be typed at once; :meth:`settled` waits for all of it.
    """

    def __init__(self, session: Session, screen: Screen) -> None:
        self.failed = False
        """Whether something that was typed did not come to a good end."""
        self._session = session
        self._screen = screen
        self._transcript = Transcript()
        self._dialog: Dialog | None = None
        self._left_open: set[str] = set()
        self._answered: set[str] = set()
        self._handles: dict[str, tuple[TurnHandle, str]] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._drawing = asyncio.Lock()
        self._asked = asyncio.Event()

    async def follow(self) -> None:
        """Show all that happens until the session is closed.

        Raises:
            MidstreamError: the server closed it.

        """
        # one mutation may wait: whatever comes meanwhile is drawn with it, from the replica
        async with self._session.mutations(limit=1) as mutations:
            if self._session.has_earlier:
                await self._say("note", "there are earlier messages: /earlier shows them")
            await self.draw()
            async for _ in mutations:
                await self.draw()

    async def follow_states(self) -> None:
        """Show how the connection stands until the session is closed."""
        async with self._session.states() as states:
            async for _ in states:
                await self._show_state()

    async def draw(self) -> None:
        """Show what is new in the replica, and ask what waits for an answer."""
        async with self._drawing:
            pieces = self._transcript.cleared(self._session.info.first_sequence)
            pieces += self._transcript.update(self._session.messages, self._session.turns)
            pieces += self._next_question()
            await self._screen.show(pieces)
            await self._screen.asking(question=self._dialog is not None)
        await self._show_state()

    async def typed(self, line: str) -> bool:
        """Do what a line says; return False where it says to leave."""
        typed = read_line(line)
        if isinstance(typed, Words) and self._dialog is not None:
            await self._answer(self._dialog, typed.text)
        elif isinstance(typed, Words):
            await self._prompt(typed.text)
        elif isinstance(typed, Unknown):
            await self._say("warning", f"there is no /{clean(typed.word)}; /help lists the commands")
        elif isinstance(typed, Command):
            if typed.name == "quit":
                return False
            await self._command(typed)
        return True

    async def settled(self) -> bool:
        """Wait until all that was typed is done, or cannot be before a question is answered; return which."""
        while self._work and self._dialog is None and not self._left_open:
            self._asked.clear()
            asked = asyncio.create_task(self._asked.wait())
            await asyncio.wait({*self._work, asked}, return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
        await self.draw()
        return not self._work

    async def fail(self, text: str) -> None:
        """Say what went wrong, and remember that something did."""
        self.failed = True
        await self._say("error", text)

    async def close(self) -> None:
        """Wait for nothing any more."""
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(self._guarded(work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except MidstreamError as error:
            await self.fail(str(error))

    async def _prompt(self, text: str) -> None:
        message_id = f"msg_{secrets.token_hex(8)}"
        self._transcript.own.add(message_id)
        try:
            handle = await self._session.prompt(text, message_id=message_id)
        except MidstreamError as error:
            await self.fail(str(error))
            return
        self._handles[message_id] = handle, text
        if self._session.state != "live":
            await self._say("note", f"kept until the connection is back: {clean(text)}")
        self._begin(self._see_through(handle, text))

    async def _see_through(self, handle: TurnHandle, text: str) -> None:
        try:
            accepted = await handle.accepted()
            if accepted.state == "queued":
                await self._say("note", f"waits (place {accepted.position or 1}): {clean(text)}")
            turn = await handle.finished()
            self.failed |= turn.state != "completed"
        except InputCancelled:
            await self._say("note", f"taken back: {clean(text)}")
        finally:
            del self._handles[handle.message_id]

    async def _answer(self, dialog: Dialog, text: str) -> None:
        try:
            response = dialog.answer(text)
        except NoAnswer as error:
            await self._say("warning", str(error))
            return
        if response is None:
            await self._screen.show(dialog.ask())
            return
        self._answered.add(dialog.interaction_id)
        self._dialog = None
        self._begin(self._respond(dialog.interaction_id, response))
        await self.draw()

    async def _respond(self, interaction_id: str, response: InteractionResponse) -> None:
        try:
            await self._session.respond(interaction_id, response)
        except MidstreamError:
            self._answered.discard(interaction_id)  # ask again, if it is still open
            await self.draw()
            raise

    async def _command(self, command: Command) -> None:
        match command.name:
            case "stop":
                self._begin(self._stop())
            case "cancel":
                self._begin(self._cancel(everything=command.argument == "all"))
            case "earlier":
                self._begin(self._earlier())
            case "queue":
                await self._show_queue()
            case "later" if self._dialog is not None:
                self._left_open.add(self._dialog.interaction_id)
                self._dialog = None
                await self.draw()
            case "answer" if self._left_open:
                self._left_open.clear()
                await self.draw()
            case "answer" if self._dialog is not None:
                await self._screen.show(self._dialog.ask())
            case "approvals":
                self._begin(self._approvals(command.argument))
            case "help":
                await self._screen.show([Line("note", f"/{name}: {text}") for name, text in HELP.items()])
            case _:
                await self._say("note", "nothing is asked")

    async def _stop(self) -> None:
        result = await self._session.stop()
        if not result.stopped:
            await self._say("note", "nothing runs")

    async def _cancel(self, *, everything: bool) -> None:
        waiting = [key for key, (handle, _) in self._handles.items() if handle.turn_id is None]
        if not waiting:
            await self._say("note", "nothing of yours waits")
        for message_id in waiting if everything else waiting[-1:]:
            await self._session.cancel_input(message_id)

    async def _approvals(self, argument: str) -> None:
        mode = _MODES.get(argument.lower())
        if mode is not None:
            await self._session.set_approval_mode(mode)
        elif self._session.info.approval_mode == "ask":
            await self._say("note", "approvals are asked for; /approvals always changes it")
        else:
            by = clean(self._session.info.approval_mode_by or "somebody")
            await self._say("note", f"approvals are given, as {by} chose; /approvals ask changes it")

    async def _earlier(self) -> None:
        if self._session.has_earlier:
            await self._session.load_earlier(EARLIER)
        async with self._drawing:
            await self._screen.show(self._transcript.earlier(self._session.messages))

    async def _show_queue(self) -> None:
        queue = enumerate(self._session.queue, 1)
        lines = [Line("note", f"{place}. {self._text_of(message_id)}") for place, message_id in queue]
        unsent = [text for handle, text in self._handles.values() if handle.state == "pending"]
        lines += [Line("note", f"not sent yet: {clean(text)}") for text in unsent]
        await self._screen.show(lines or [Line("note", "nothing waits")])

    def _text_of(self, message_id: str) -> str:
        own = self._handles.get(message_id)
        return clean(own[1]) if own else "(typed elsewhere)"

    def _next_question(self) -> list[Piece]:
        pending = {part.interaction_id: part for part in self._pending()}
        self._left_open &= pending.keys()
        self._answered &= pending.keys()
        to_ask = [part for key, part in pending.items() if key not in self._left_open | self._answered]
        if self._dialog is not None and self._dialog.interaction_id in pending:
            return []
        self._dialog = Dialog(to_ask[0]) if to_ask else None
        if self._dialog is None:
            return []
        self._asked.set()
        return [*self._dialog.ask()]

    def _pending(self) -> list[InteractionPart]:
        if not self._session.info.pending_interactions:
            return []
        parts = (part for message in self._session.messages for part in message.parts)
        return [part for part in parts if isinstance(part, InteractionPart) and part.status == "pending"]

    async def _say(self, tone: Tone, text: str) -> None:
        await self._screen.show([Line(tone, text)])

    async def _show_state(self) -> None:
        session = self._session
        problem = session.problem
        # a line of the screen is short, and that it tries again is what a person wants to know
        offline = f"offline, trying again: {problem}"
        link = offline if problem and session.state == "offline" else session.state
        activity = _PHASES[session.turn.phase] if session.turn else ""
        waiting = len(session.queue)
        await self._screen.state(link, f"{activity}, {waiting} waiting" if waiting else activity)
