"""A tool call that a stream has begun, from its first character to its outcome."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from midstream.adapters.growing import Halves, merged
from midstream.adapters.plain import carried, unicode
from midstream.adapters.reader import arguments
from midstream.protocol.errors import IllegalTransition

if TYPE_CHECKING:
    from midstream.adapters.events import ToolStarted
    from midstream.adapters.fed import Fed
    from midstream.agents import Step, ToolCall
    from midstream.protocol.model import ProviderMetadata
    from midstream.protocol.values import Value

CUT = "The model's stream ended before the arguments of this call were complete."
NO_JSON = "The arguments of this call are no JSON that can be read."


class Call:
    """A tool call, from its first character to its outcome, whoever of stream and agent moves it."""

    def __init__(self, call: ToolCall, event: ToolStarted) -> None:
        """Made by :meth:`start`."""
        self._call = call
        self._provider_executed = event.provider_executed
        self._metadata = event.metadata
        self._pieces: list[str] = []
        self._join = Halves()
        self._invalid = False
        self.approval_id: str | None = None

    @classmethod
    async def start(cls, step: Step, event: ToolStarted) -> Call:
        """Open the part."""
        call = await step.tool(
            unicode(event.tool_name) or "unnamed",
            input=UNSET if event.input is UNSET else carried(event.input),
            tool_call_id=unicode(event.tool_call_id) or None,
            title=event.title,
            dynamic=event.dynamic or None,
            provider_executed=event.provider_executed or None,
            call_provider_metadata=event.metadata,
        )
        return cls(call, event)

    async def append_input(self, text: str) -> None:
        """Append to the arguments."""
        whole = self._join.feed(text)
        if whole and self._call.state == "input-streaming":
            self._pieces.append(whole)
            await self._call.append_input(whole)

    async def ready(
        self,
        input: Value | UnsetType = UNSET,
        raw_input: str | None = None,
        metadata: ProviderMetadata | None = None,
    ) -> None:
        """The arguments are complete; where they are no JSON the call fails, and keeps them as they are."""
        if self._call.state != "input-streaming":
            return
        if input is UNSET and raw_input is None:
            words = "".join(self._pieces)
            input = arguments(words)
            raw_input = words if input is UNSET else None
        whole = merged(self._metadata, metadata) if metadata else None
        if raw_input is None:
            await self._call.ready(carried(input), call_provider_metadata=whole)
            return
        await self._call.ready(raw_input=unicode(raw_input), call_provider_metadata=whole)
        self._invalid = True
        await self.fail(NO_JSON)

    async def run(self) -> None:
        """The tool executes; also one that was announced before, and has been approved since."""
        await self.ready()
        was_asked, self.approval_id = self.approval_id is not None, None
        if self._call.state == "ready":
            await self._call.run()
        elif self._call.state == "running" and was_asked:
            with contextlib.suppress(IllegalTransition):  # it runs still: the agent decided without a person
                await self._call.run()

    async def output(self, output: Value, metadata: ProviderMetadata | None, *, preliminary: bool) -> None:
        """Show an output, or end the call with it."""
        await self.ready()
        if self.has_ended:
            return
        if preliminary:
            await self._call.progress(output)
        else:
            await self._call.complete(output, provider_metadata=metadata)

    async def fail(self, error: str) -> None:
        """End the call with what went wrong."""
        if not self.has_ended:
            await self._call.fail(unicode(error))

    @property
    def has_ended(self) -> bool:
        """Whether nothing can change it any more."""
        return self._call.state in {"completed", "failed"}

    async def cut(self) -> None:
        """No more arguments come: a call that still waits for some has failed."""
        if self._call.state == "input-streaming":
            await self.fail(CUT)

    def tell(self, fed: Fed) -> None:
        """Say what the agent has to do about it."""
        if self._invalid:
            fed.invalid_calls.append(self._call)
        elif self.approval_id is not None and not self.has_ended:
            fed.approvals.append((self._call, self.approval_id))
        elif self._call.state == "ready" and not self._provider_executed:
            fed.calls.append(self._call)
