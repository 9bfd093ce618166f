"""What any provider's stream says, in one set of words (pure).

A provider's reader turns each event of its stream into these; :mod:`midstream.adapters.feeding` writes
them into a step. What grows (a text, a reasoning, a tool call) is named by its ``block``, a string
that the reader makes unique over the whole stream, so ids and indices that a provider uses again
in a later model step never mix two parts.

Metadata maps a provider's name to an object of its own (SPEC 2.3); at the end of a block it is
merged into what was given at its start.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from midstream.protocol.model import ProviderMetadata
from midstream.protocol.values import Value

FinishReason: TypeAlias = Literal["stop", "length", "tool-calls", "content-filter", "error", "other"]


class TextStarted(Struct, frozen=True):
    """A text opens. Needed only for its metadata: a delta for an unknown block opens one too."""

    block: str
    metadata: ProviderMetadata | None = None


class TextDelta(Struct, frozen=True):
    """More of a text. Half of a surrogate pair at its end is joined with the next delta of the block."""

    block: str
    text: str


class TextEnded(Struct, frozen=True):
    """A text is complete; of an unknown block it says nothing, unless there is metadata to keep."""

    block: str
    metadata: ProviderMetadata | None = None


class ReasoningStarted(Struct, frozen=True):
    """A reasoning opens, as :class:`TextStarted`; it is kept even where nothing of it can be read."""

    block: str
    metadata: ProviderMetadata | None = None


class ReasoningDelta(Struct, frozen=True):
    """More of a reasoning, as :class:`TextDelta`."""

    block: str
    text: str


class ReasoningEnded(Struct, frozen=True):
    """A reasoning is complete; its metadata is what the provider wants back (a signature, encrypted text)."""

    block: str
    metadata: ProviderMetadata | None = None


class ToolStarted(Struct, frozen=True):
    """A tool call begins. With ``input`` its arguments are complete, else they stream."""

    block: str
    tool_call_id: str
    tool_name: str
    input: Value | UnsetType = UNSET
    provider_executed: bool = False
    """The provider runs it itself; the agent only watches."""
    dynamic: bool = False
    """The tool is not among those that the agent offered by name."""
    title: str | None = None
    metadata: ProviderMetadata | None = None


class ToolInputDelta(Struct, frozen=True):
    """More of a tool call's arguments, as text."""

    block: str
    text: str


class ToolInputReady(Struct, frozen=True):
    """The arguments are complete: ``input``, or what streamed so far, parsed as JSON (empty is ``{}``).

    ``raw_input`` gives arguments that cannot be parsed; the call then fails, so that the model can be told.
    """

    block: str
    input: Value | UnsetType = UNSET
    raw_input: str | None = None
    metadata: ProviderMetadata | None = None


class ToolRunning(Struct, frozen=True):
    """The tool executes: the provider, or a framework that runs the agent's tools itself, said so."""

    block: str


class ToolOutput(Struct, frozen=True):
    """What a tool gave; ``preliminary`` where the next output replaces it."""

    block: str
    output: Value
    preliminary: bool = False
    metadata: ProviderMetadata | None = None


class ToolFailed(Struct, frozen=True):
    """A tool call failed, for the reason given."""

    block: str
    error: str


class ApprovalRequested(Struct, frozen=True):
    """The provider waits for a person before it runs this call of its own (OpenAI Responses with MCP)."""

    block: str
    approval_id: str


class UrlSource(Struct, frozen=True):
    """A page that the answer rests on."""

    url: str
    title: str | None = None
    source_id: str | None = None
    metadata: ProviderMetadata | None = None


class DocumentSource(Struct, frozen=True):
    """A document that the answer rests on."""

    media_type: str
    title: str
    filename: str | None = None
    source_id: str | None = None
    metadata: ProviderMetadata | None = None


class File(Struct, frozen=True):
    """A file that the model made, by its URL, which may be a data URL."""

    url: str
    media_type: str
    filename: str | None = None
    metadata: ProviderMetadata | None = None


class Data(Struct, frozen=True):
    """Data for the user interface. Of ``usage`` the last before a step boundary or the end is kept."""

    data_type: str
    data: Value
    data_id: str | None = None


class Refusal(Struct, frozen=True):
    """The model declined to answer. This writes nothing: what people should read comes as text of its own."""

    text: str


class StepBoundary(Struct, frozen=True):
    """One model call of several in this stream is over; the next parts belong to another."""

    step_id: str | None = None


class StreamError(Struct, frozen=True):
    """The stream broke, or the provider said so. What came before it stays."""

    code: str
    message: str
    recoverable: bool = False


class Finished(Struct, frozen=True):
    """The model is done, and why; ``raw_reason`` is the provider's own word."""

    reason: FinishReason
    raw_reason: str | None = None


Event: TypeAlias = (
    TextStarted
    | TextDelta
    | TextEnded
    | ReasoningStarted
    | ReasoningDelta
    | ReasoningEnded
    | ToolStarted
    | ToolInputDelta
    | ToolInputReady
    | ToolRunning
    | ToolOutput
    | ToolFailed
    | ApprovalRequested
    | UrlSource
    | DocumentSource
    | File
    | Data
    | Refusal
    | StepBoundary
    | StreamError
    | Finished
)
"""Anything that a stream can say."""
