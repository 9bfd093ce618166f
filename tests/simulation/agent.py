"""The agent of a simulation: it does what the prompt's script says, and remembers what it was told.

Whatever a call of the agent API has returned is a promise: it is on disk. The agent writes each of them into
a `TurnRecord`, which is held against the store in the end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from midstream.protocol.model import InteractionPart, Question, QuestionOption, TextPart
from midstream.protocol.values import Value
from midstream.server import Action, Approval, Step, TextStream, ToolCall, Turn, TurnFailed
from tests.simulation.record import TurnRecord
from tests.simulation.script import STEP_ACTS, parsed

LONG = "long " * 30
WORDS = ("yes ", "no ", "naïve ", "日本 ", "🙂", "\n", '"quoted" ', "a", "word ", LONG)
PAUSES = (0.0, 0.0, 0.001, 0.01, 0.05, 0.2, 0.7)
KIB = 1024


class ScriptedAgent:
    """Runs every turn by its script. Its pauses and words come from the seed and the prompt's id."""

    def __init__(self, seed: int, remember: Callable[[TurnRecord], None]) -> None:
        self._seed = seed
        self._remember = remember

    async def __call__(self, turn: Turn) -> None:
        """Run one turn."""
        record = TurnRecord(turn.session_id, turn.turn_id, turn.prompt_text)
        self._remember(record)
        performance = Performance(turn, record, Random(f"{self._seed} {turn.prompt.message_id}"))
        for word in turn.prompt_text.split():
            await performance.do(word)
        record.finished = True


class Performance:
    """One turn while it is played, or what one process plays of it."""

    def __init__(self, turn: Turn, record: TurnRecord, rng: Random, process: str = "") -> None:
        self._turn = turn
        self._record = record
        self._rng = rng
        self._process = process
        self._count = 0
        self._acts: dict[str, Callable[[int], Awaitable[None]]] = {
            "approve": self._approve,
            "ask": self._ask,
            "two": self._ask_twice,
            "action": self._action,
            "abandon": self._abandon,
            "nap": self._nap,
            "error": self._error,
            "inputs": self._inputs,
            "internal": self._internal,
            "raise": self._raise,
            "fail": self._fail,
        }

    async def do(self, word: str) -> None:
        """Do one act of the script."""
        name, number = parsed(word.split("+", maxsplit=1)[0])
        if name not in STEP_ACTS:
            await self._acts[name](number)
            return
        async with self._turn.step() as step:
            scene = self._scene(step)
            for act in word.split("+"):
                await scene.do(*parsed(act))
        self._record.steps[step.step_id] = scene.texts

    async def _approve(self, seconds: int) -> None:
        call = await self._tool()
        approval = await self._approval(call, seconds)
        if not approval.approved:
            await self._ended(call, "failed", "denied", call.fail("denied"))
            return
        await claim(call, self._record)
        await pause(self._rng)
        await self._ended(call, "completed", {"done": True}, call.complete({"done": True}))

    async def _ask_twice(self, seconds: int) -> None:
        call = await self._tool()
        await asyncio.gather(self._approval(None, seconds), self._approval(call, seconds))

    async def _ask(self, seconds: int) -> None:
        title = self._ask_title(None)
        if await self._outcome(title) is not None:
            return
        options = [QuestionOption(value=value) for value in ("red", "green", "blue")]
        answers = await self._turn.ask(
            Question(question_id="free", question="Why?"),
            Question(question_id="one", question="Which?", options=options),
            Question(question_id="some", question="Which ones?", options=options, multiple=True),
            title=title,
            expires_in=seconds or None,
        )
        self._record.asked[title] = answers.status

    async def _action(self, updates: int) -> None:
        kind = self._title()
        action: Action = await self._turn.action(kind, "Working", data={"at": 0})
        self._record.actions[kind] = "running"
        for number in range(updates):
            await action.update(data={"at": number + 1})
            await pause(self._rng)
        end = self._rng.choice(["completed", "failed", "running"])
        if end == "completed":
            await action.complete(title="Worked")
        elif end == "failed":
            await action.fail(description="It broke.")
        self._record.actions[kind] = end

    async def _abandon(self, deltas: int) -> None:
        async with self._turn.step() as step:
            scene = self._scene(step)
            try:
                await scene.fail_midway(deltas)
            except ConnectionError:
                undone = await step.abandon()
                if undone:
                    scene.texts.clear()
            await scene.do("text", deltas)
        self._record.steps[step.step_id] = scene.texts

    async def _nap(self, seconds: int) -> None:
        await asyncio.sleep(seconds)

    async def _error(self, _: int) -> None:
        code = self._title()
        await self._turn.error(code, "Something was not as it should be.")
        self._record.errors.append(code)

    async def _inputs(self, _: int) -> None:
        self._record.absorbed += [message.message_id for message in await self._turn.take_inputs()]

    async def _internal(self, _: int) -> None:
        message = await self._turn.internal(TextPart(text="The user is in a hurry."))
        self._record.internal.append(message.message_id)

    async def _raise(self, _: int) -> None:
        raise RuntimeError("as the script says")

    async def _fail(self, _: int) -> None:
        raise TurnFailed("scripted", "The script ends in a failure.", recoverable=True)

    async def _approval(self, call: ToolCall | None, seconds: int) -> Approval:
        title = self._ask_title(call)
        known = None if call is not None else await self._outcome(title)
        if known is not None:
            return Approval(known)
        approval = await self._turn.ask_approval(call, title=title, expires_in=seconds or None)
        self._record.asked[title] = approval.status
        return approval

    async def _tool(self) -> ToolCall:
        async with self._turn.step() as step:
            call = await step.tool("delete", input={"path": "a.txt"})
            self._record.tools[call.tool_call_id] = ("ready", None)
        return call

    async def _ended(self, call: ToolCall, state: str, value: Value, move: Awaitable[None]) -> None:
        await move
        self._record.tools[call.tool_call_id] = (state, value)

    def _scene(self, step: Step) -> "StepScene":
        return StepScene(step, self._record, self._rng, self._process)

    def _ask_title(self, call: ToolCall | None) -> str:
        """Return the title of a question, the only one of its turn."""
        del call
        return self._title()

    async def _outcome(self, title: str) -> InteractionPart | None:
        """Return a question that another process has asked and got answered."""
        del title
        return None

    def _title(self) -> str:
        self._count += 1
        return f"{self._turn.turn_id}-{self._count}"


class StepScene:
    """The acts of one step, and the texts that it wrote."""

    def __init__(self, step: Step, record: TurnRecord, rng: Random, process: str) -> None:
        self.texts: list[tuple[str, str]] = []
        self._step = step
        self._record = record
        self._rng = rng
        self._process = process

    async def do(self, name: str, number: int) -> None:
        """Do one act."""
        if name in {"text", "think", "many"}:
            stream = self._step.reasoning() if name == "think" else self._step.text()
            async with stream as text:
                written = await self.stream(text, number, patient=name != "many")
            self.texts.append(("reasoning" if name == "think" else "text", written))
        elif name == "slow":
            await self._slow_text(number)
        elif name == "both":
            await self._both(number)
        elif name == "mix":
            await self._mix(number)
        elif name in {"stream", "bad", "open"}:
            await self._streamed_tool(name, number)
        elif name in {"tool", "big", "hold"}:
            await self._whole_tool(name, number)
        else:
            await self._other(name)

    async def stream(self, text: TextStream, deltas: int, *, patient: bool = True) -> str:
        """Append so many deltas; return the whole."""
        written = ""
        for _ in range(deltas):
            piece = self._rng.choice(WORDS)
            self._record.appends(self._process, text.part_id, piece)
            if piece == "🙂":  # as a provider may send it, cut between its halves
                high, low = piece.encode("utf-16-le")[:2], piece.encode("utf-16-le")[2:]
                await text.append(high.decode("utf-16-le", "surrogatepass"))
                await text.append(low.decode("utf-16-le", "surrogatepass"))
            else:
                await text.append(piece)
            written += piece
            if patient:
                await pause(self._rng)
        return written

    async def fail_midway(self, deltas: int) -> None:
        """Write a text and perhaps a tool, and meet a provider's error while the text is open.

        Raises:
            ConnectionError: Always.
        """
        async with self._step.text() as text:
            self.texts.append(("text", await self.stream(text, deltas)))
            if self._rng.random() < 0.4:
                await self.do(self._rng.choice(["tool", "hold", "open"]), 1)
            raise ConnectionError

    async def _both(self, deltas: int) -> None:
        thought = said = ""
        async with self._step.reasoning() as thinking, self._step.text() as text:
            for _ in range(deltas):
                thought += await self.stream(thinking, 1)
                said += await self.stream(text, 1)
        self.texts += [("reasoning", thought), ("text", said)]

    async def _slow_text(self, deltas: int) -> None:
        """Stream long enough for readers to go and come back, and much enough to fill a short history."""
        async with self._step.text() as text:
            for _ in range(deltas):
                self._record.appends(self._process, text.part_id, LONG)
                await text.append(LONG)
                await asyncio.sleep(self._rng.uniform(0.1, 1.5))
        self.texts.append(("text", LONG * deltas))

    async def _mix(self, deltas: int) -> None:
        """Let a tool be committed while a text streams on before and after it."""
        async with self._step.text() as text:
            written = await self.stream(text, deltas)
            await self._whole_tool("tool", 1)
            self.texts.append(("text", written + await self.stream(text, deltas)))

    async def _streamed_tool(self, name: str, pieces: int) -> None:
        call = await self._step.tool("search", title="Search")
        for number in range(pieces):
            piece = f'"{number}", '
            self._record.appends(self._process, call.part_id, piece)
            await call.append_input(piece)
            await pause(self._rng)
        if name == "open":
            return
        if name == "bad":
            await self._move(call, "ready", None, call.ready(raw_input="[oops"))
            await self._move(call, "failed", "not JSON", call.fail("not JSON"))
            return
        await self._move(call, "ready", None, call.ready({"pieces": pieces}))
        await claim(call, self._record)
        await self._move(call, "completed", [1, 2.5, None], call.complete([1, 2.5, None]))

    async def _whole_tool(self, name: str, number: int) -> None:
        call = await self._step.tool("fetch", input={"n": number}, tool_metadata={"ui": "card"})
        self._record.tools[call.tool_call_id] = ("ready", None)
        if name == "hold":
            return
        await claim(call, self._record)
        for done in range(number if name == "tool" else 0):
            await self._move(call, "running", None, call.progress({"percent": done}))
            await pause(self._rng)
        output: Value = "x" * (number * KIB) if name == "big" else {"n": number, "ok": True}
        await self._move(call, "completed", output, call.complete(output))

    async def _other(self, name: str) -> None:
        step = self._step
        if name == "file":
            await step.file("data:,hello", "text/plain", filename="hello.txt")
        elif name == "data":
            await step.data("chart", {"points": [1, 2, 3]}, data_id="c1")
        elif name == "source":
            await step.source_url("https://example.com/", title="Example")
        elif name == "document":
            await step.source_document("application/pdf", "Paper", filename="paper.pdf")
        elif name == "mark":
            await step.marker()

    async def _move(self, call: ToolCall, state: str, value: Value, move: Awaitable[None]) -> None:
        await move
        self._record.tools[call.tool_call_id] = (state, value)


async def claim(call: ToolCall, record: TurnRecord) -> None:
    """Claim a tool call, and execute it: once, by whatever process."""
    await call.run()
    record.tools[call.tool_call_id] = ("running", None)
    record.executed[call.tool_call_id] += 1


async def pause(rng: Random) -> None:
    """Let some time pass, or none, or only let others run."""
    seconds = rng.choice(PAUSES)
    if seconds or rng.random() < 0.3:
        await asyncio.sleep(seconds)
