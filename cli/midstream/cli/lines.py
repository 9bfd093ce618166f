"""How the parts that do not stream read as lines. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from midstream.cli.pieces import Line, Tone, clean
from midstream.protocol.model import (
    ActionPart,
    ApprovalResponse,
    ContextPart,
    DataPart,
    ErrorPart,
    FilePart,
    InteractionPart,
    Part,
    QuestionResponse,
    SourcePart,
    ToolPart,
)

if TYPE_CHECKING:
    from midstream.protocol.model import Question, Turn

LONGEST_VALUE = 160
"""Characters of a value that a line shows; the rest is in `midstream inspect`."""


def part_lines(part: Part, before: Part | None = None) -> list[Line]:
    """Return what is new about a part that does not stream: all of it, or what changed since ``before``."""
    if isinstance(part, ToolPart):
        return _tool(part, before if isinstance(before, ToolPart) else None)
    if isinstance(part, InteractionPart):
        return _interaction(part, before if isinstance(before, InteractionPart) else None)
    if isinstance(part, ActionPart):
        return [_action(part)]
    if isinstance(part, ErrorPart):
        return [Line("error", clean(f"{part.message} ({part.code})"))]
    fact = _fact(part)
    return [Line("note", clean(fact))] if fact else []


def turn_line(turn: Turn) -> Line | None:
    """Return how a turn ended, where that needs words; a failure's reason is a part of its own."""
    if turn.state == "stopped":
        return Line("warning", "stopped")
    if turn.state == "failed":
        return Line(
            "error", clean(f"failed: {turn.error.message} ({turn.error.code})" if turn.error else "failed")
        )
    return None


def options_of(question: Question) -> list[str]:
    """Return the offered answers as a person reads them, in order."""
    labels: list[str] = []
    for option in [] if question.options is UNSET else question.options:
        label = option.value if option.label is UNSET else option.label
        labels.append(clean(label if option.description is UNSET else f"{label} ({option.description})"))
    return labels


def compact(value: object) -> str:
    """Return a value as JSON on one line, cut where it is long."""
    return _shortened(msgspec.json.encode(value).decode())


def _fact(part: Part) -> str:
    """Return what a part says that never changes; nothing for those that say nothing."""
    match part:
        case FilePart():
            name = _shortened(part.url) if part.filename is UNSET else part.filename
            return f"file {name} ({part.media_type})"
        case DataPart():
            return f"{part.data_type} {compact(part.data)}"
        case SourcePart():
            return f"source {_source(part)}"
        case ContextPart():
            return f"context {part.tag}: {_shortened(part.context)}"
        case _:
            return ""


def _tool(part: ToolPart, before: ToolPart | None) -> list[Line]:
    label = part.tool_name if part.title is UNSET else f"{part.title} ({part.tool_name})"
    if before is None or before.input is UNSET:
        label += _input(part)
    line: tuple[Tone, str] | None = None
    match part.state:
        case "input-streaming" if before is None:
            line = "tool", f"{label} …"
        case "ready" | "waiting-user" if before is None or before.state == "input-streaming":
            line = "tool", label
        case "running" if part.output is UNSET:
            line = "tool", f"{label} is running"
        case "running":
            line = "tool", f"{label} … {compact(part.output)}"
        case "completed":
            line = "good", label if part.output is UNSET else f"{label} → {compact(part.output)}"
        case "failed":
            line = "error", f"{label} failed: {part.error or 'without a reason'}"
        case _:
            pass  # what the next step waits for is said by the interaction's own line
    return [Line(line[0], clean(line[1]))] if line else []


def _input(part: ToolPart) -> str:
    if part.input is not UNSET:
        return f" {compact(part.input)}"
    return "" if part.raw_input is UNSET else f" {_shortened(part.raw_input)}"


def _interaction(part: InteractionPart, before: InteractionPart | None) -> list[Line]:
    lines: list[Line] = []
    if before is None:
        lines.append(Line("ask", clean(part.request.title)))
        if part.request.description is not UNSET:
            lines.append(Line("ask", clean(part.request.description)))
    if part.status != "pending" and (before is None or before.status == "pending"):
        lines.append(_outcome(part))
    return lines


def _outcome(part: InteractionPart) -> Line:
    by = "" if part.resolved_by is UNSET else f" by {part.resolved_by}"
    match part.response:
        case QuestionResponse(answers=answers):
            given = "; ".join(
                (item.value if isinstance(item.value, str) else ", ".join(item.value)) or "nothing"
                for item in answers
            )
            return Line("good", clean(f"answered{by}: {_shortened(given)}"))
        case ApprovalResponse(decision=decision, reason=reason):
            why = f": {_shortened(reason)}" if reason else ""
            why += " (without asking)" if part.approval_mode else ""
            return Line("good" if decision == "approved" else "warning", clean(f"{decision}{by}{why}"))
        case _:
            why = "" if part.cancel_reason is UNSET else f" ({part.cancel_reason})"
            return Line("warning", f"{part.status}{why}")


def _action(part: ActionPart) -> Line:
    title = clean(part.title + (f": {part.description}" if part.description is not UNSET else ""))
    match part.state:
        case "running":
            return Line("tool", f"{title} …")
        case "completed":
            return Line("good", title)
        case "failed":
            return Line("error", f"{title} failed")


def _source(part: SourcePart) -> str:
    title = part.title if part.title is not UNSET else part.source_id
    where = part.url if part.url is not UNSET else part.filename
    return f"{title} <{where}>" if where is not UNSET else title


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_VALUE else f"{line[: LONGEST_VALUE - 1]}…"
