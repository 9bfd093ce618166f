"""A worker that a case drives: it attaches, sends numbered writes, and keeps what comes (SPEC 14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from midstream.conformance.outcome import Failed
from midstream.conformance.servers.frame import Frame, Map
from midstream.conformance.servers.peer import Peer


class Held:
    """An attachment of a turn.

    Attributes:
        result: the answer that began it.
        turn_id: the turn.
        n: the number of the next write.
    """

    def __init__(self, peer: Peer, session_id: str, result: Map, since: int) -> None:
        """Go on from an answer of `agent.attach`."""
        self.peer = peer
        self.session_id = session_id
        self.result = result
        self.turn_id: str = result["turn"]["turn_id"]
        self.channel: int = result["channel"]
        self.n: int = result["next_n"]
        self._since = since
        self._handles: dict[str, int] = {}

    async def write(self, op: str, **fields: Any) -> int:  # noqa: ANN401 - of SPEC
        """Send a write, and return its number."""
        n, self.n = self.n, self.n + 1
        await self.peer.send("write", self.channel, n, {"op": op, **fields})
        return n

    async def append(self, part_id: str, text: str) -> int:
        """Append text to a part, and return the number of the append."""
        if part_id not in self._handles:
            self._handles[part_id] = len(self._handles) + 1
            await self.peer.send("part", self.channel, self._handles[part_id], part_id)
        n, self.n = self.n, self.n + 1
        await self.peer.send("a", self.channel, n, self._handles[part_id], text)
        return n

    async def taken(self, n: int | None = None) -> int:
        """Wait for the ack of all writes up to a number, by default the last one; return what is durable."""
        wanted = self.n - 1 if n is None else n
        if wanted < self.result["next_n"]:
            return int(self.result["durable_n"])
        frame = await self._of(
            lambda one: one.tag == "ack" and one.plain[2] >= wanted, f"an ack of write {wanted}"
        )
        return int(frame.plain[3])

    async def stored(self, n: int | None = None) -> None:
        """Wait until all writes up to a number are on disk."""
        wanted = self.n - 1 if n is None else n
        await self._of(
            lambda one: one.tag == "ack" and one.plain[3] >= wanted, f"an ack of write {wanted} as durable"
        )

    async def wrote(self, n: int) -> Map:
        """Wait for what a write gave back."""
        frame = await self._of(
            lambda one: one.tag == "wrote" and one.plain[2] == n, f"what write {n} gave back"
        )
        return dict(frame.plain[3])

    async def refusal(self, n: int) -> Map:
        """Wait for the refusal of a write."""
        frame = await self._of(
            lambda one: one.tag == "refused" and one.plain[2] == n, f"a refusal of write {n}"
        )
        return dict(frame.plain[3])

    async def refused(self, code: str, op: str, **fields: Any) -> Map:  # noqa: ANN401 - of SPEC
        """Send a write that must be refused by this code."""
        info = await self.refusal(await self.write(op, **fields))
        if info["code"] != code:
            raise Failed(f"{op} must be refused (14.7)", expected=code, seen=info)
        return info

    async def detached(self) -> str:
        """Wait for the end of the attachment, and return why."""
        return str((await self._of(lambda one: one.tag == "detached", "detached")).plain[2])

    async def answered(self, interaction_id: str) -> Map:
        """Wait for the outcome of an interaction."""
        frame = await self._of(
            lambda one: one.tag == "answered" and one.plain[2]["interaction_id"] == interaction_id,
            "the outcome",
        )
        return dict(frame.plain[2])

    async def inputs(self, count: int) -> None:
        """Wait until so many inputs can be absorbed."""
        await self._of(lambda one: one.tag == "inputs" and one.plain[2] == count, f"{count} inputs that wait")

    def seen(self, tag: str) -> list[Any]:
        """Return the frames of the attachment with a tag."""
        return [
            one.plain
            for one in self.peer.frames[self._since :]
            if one.tag == tag and one.plain[1] == self.channel
        ]

    async def _of(self, fits: Callable[[Frame], bool], what: str) -> Frame:
        return await self.peer.until(
            lambda one: len(one.plain) > 1 and one.plain[1] == self.channel and fits(one),
            what,
            since=self._since,
        )

    # What agents do mostly

    async def text(self, said: str = "", *, step: str = "s1", kind: str = "text") -> str:
        """Begin a part that grows, and return its id; what is said first is appended."""
        part_id = f"p-{uuid4().hex[:8]}"
        part = {"type": kind, "part_id": part_id, "step_id": step, "text": "", "state": "streaming"}
        await self.write("add_part", part=part)
        if said:
            await self.append(part_id, said)
        return part_id

    async def tool(self, state: str = "ready", *, step: str = "s1", **more: Any) -> str:  # noqa: ANN401 - of SPEC
        """Add a tool call, and return the id of its part."""
        part_id = f"t-{uuid4().hex[:8]}"
        given: Map = {"input": {"x": 1}} if state == "ready" else {}
        part = {
            "type": "tool",
            "part_id": part_id,
            "step_id": step,
            "tool_call_id": f"call-{part_id}",
            "tool_name": "look",
            "state": state,
        }
        await self.write("add_part", part={**part, **given, **more})
        return part_id

    async def ask(self, kind: str = "approval", *, tool: str | None = None, **more: Any) -> str:  # noqa: ANN401 - of SPEC
        """Ask a person, and return the id of the interaction."""
        interaction_id = f"i-{uuid4().hex[:8]}"
        request: Map = {"title": "May I?"}
        if kind == "question":
            request["questions"] = [
                {"question_id": "q1", "question": "Which?", "options": [{"value": "a"}, {"value": "b"}]},
                {"question_id": "q2", "question": "What else?"},
                {
                    "question_id": "q3",
                    "question": "All?",
                    "options": [{"value": "x"}, {"value": "y"}],
                    "multiple": True,
                },
            ]
        if tool is not None:
            more["tool_part_id"] = tool
        await self.write("ask", interaction_id=interaction_id, interaction_type=kind, request=request, **more)
        return interaction_id

    async def say(self, *words: str, step: str = "s1") -> str:
        """Say words in a part of their own, and wait until they were taken."""
        part_id = await self.text(step=step)
        for word in words:
            await self.append(part_id, word)
        await self.taken()
        return part_id

    async def end_step(self, step: str = "s1") -> None:
        """End a step."""
        await self.write("end_step", step_id=step)

    async def end(self, state: str = "completed", **more: Any) -> None:  # noqa: ANN401 - of SPEC
        """End the turn, and wait until that is on disk and the attachment is over."""
        await self.write("end_turn", state=state, **more)
        code = await self.detached()
        if code != "ended":
            raise Failed("the end of a turn ends its attachment (14.8)", expected="ended", seen=code)
        await self.stored()


class Agent:
    """One process of a worker, on one connection after another."""

    def __init__(self, peer: Peer, name: str, instance: str) -> None:
        """Have registered on a connection."""
        self.peer = peer
        self.name = name
        self.instance = instance
        self.lease = 0.0

    async def register(self, **more: Any) -> Map:  # noqa: ANN401 - of SPEC
        """Register on the present connection."""
        given = {"concurrency": 4, "resumes": True, **more}
        result = await self.peer.call("agent.register", name=self.name, instance=self.instance, **given)
        self.lease = result["lease_ms"] / 1000
        return result

    async def attach(
        self, session_id: str, turn_id: str, *, generation: int | None = None, waiting: Sequence[str] = ()
    ) -> Held:
        """Attach to a turn."""
        params: Map = {"session_id": session_id, "turn_id": turn_id}
        if generation is not None:
            params["generation"] = generation
        if waiting:
            params["waiting"] = list(waiting)
        since = len(self.peer.frames)
        return Held(self.peer, session_id, await self.peer.call("agent.attach", **params), since)
