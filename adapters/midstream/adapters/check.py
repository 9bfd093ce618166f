"""Feeds recorded streams and says what became of them: ``python -m midstream.adapters.check FOLDER``.

The folder has one folder for each format (``openai-chat``, ``openai-responses``, ``anthropic``, ``google``),
and in it files with one JSON event a line. Each file is fed into a step in memory. Its text and its reasoning
must be what a plain look at the events finds: that look knows the format's fields for text and nothing else,
and shares no code with the readers. The exit code is 1 where a file fails or there is none.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.adapters.feeding import feed
from midstream.adapters.kept import KeptParts
from midstream.protocol.model import ReasoningPart, TextPart, ToolPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from midstream.adapters.fed import Fed

Words = tuple[str, str]
"""The text and the reasoning of a stream."""


def chat(event: Any) -> Iterator[Words]:  # noqa: ANN401  # any event of a file
    """Look at a chunk of Chat Completions."""
    for choice in event.get("choices", ()):
        delta = choice["delta"]
        yield "", delta.get("reasoning_content") or delta.get("reasoning") or ""
        content: Any = delta.get("content") or ""
        if isinstance(content, str):
            yield content, ""
            continue
        for part in content:
            yield part.get("text", ""), "".join(thought["text"] for thought in part.get("thinking", ()))


def responses(event: Any) -> Iterator[Words]:  # noqa: ANN401  # any event of a file
    """Look at an event of the Responses API."""
    if event["type"] in {"response.output_text.delta", "response.refusal.delta"}:
        yield event["delta"], ""
    elif event["type"] in {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}:
        yield "", event["delta"]


def messages(event: Any) -> Iterator[Words]:  # noqa: ANN401  # any event of a file
    """Look at an event of Anthropic's Messages."""
    block: Any = event.get("content_block") or event.get("delta") or {}
    if block.get("type") in {"text", "text_delta"}:
        yield block["text"], ""
    elif block.get("type") in {"thinking", "thinking_delta"}:
        yield "", block["thinking"]


def gemini(event: Any) -> Iterator[Words]:  # noqa: ANN401  # any event of a file
    """Look at a chunk of Gemini."""
    for candidate in event.get("candidates", ()):
        for part in candidate.get("content", {}).get("parts", ()):
            yield ("", part.get("text", "")) if part.get("thought") else (part.get("text", ""), "")


LOOKS: dict[str, Callable[[Any], Iterator[Words]]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": messages,
    "google": gemini,
}
"""The plain look at each format, by its folder."""


async def checked(name: str, lines: list[str]) -> tuple[list[str], list[str]]:
    """Feed the lines of a file in this format; return its row after the name, and what is wrong with it."""
    events = [json.loads(line) for line in lines]
    found = [words for event in events for words in LOOKS[name](event)]
    kept = KeptParts()
    async with kept.step() as step:
        fed = await feed(step, events)
    parts = kept.parts
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    reasoning = "".join(part.text for part in parts if isinstance(part, ReasoningPart))
    problems = [
        f"the {what} has {len(had)} characters, the file {len(wanted)}"
        for what, had, wanted in (
            ("text", text, "".join(said for said, _ in found)),
            ("reasoning", reasoning, "".join(thought for _, thought in found)),
        )
        if had != wanted
    ]
    tools = [part.tool_name for part in parts if isinstance(part, ToolPart)]
    cells = [len(events), len(parts), len(text), len(reasoning), len(tools), fed.unknown.total(), ending(fed)]
    return [str(cell) for cell in cells], problems + [f"unknown: {kind}" for kind in fed.unknown]


def ending(fed: Fed) -> str:
    """Say how a stream ended."""
    return fed.error.code if fed.error else fed.reason or "-"


def table(rows: list[list[str]]) -> str:
    """Return the rows in columns, the numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if 0 < column < len(row) - 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def main(folder: Path) -> int:
    """Check all files of the folder, print the table, and return the exit code."""
    rows = [["file", "events", "parts", "text", "reasoning", "tools", "unknown", "end"]]
    notes: list[str] = []
    failed = False
    for path in sorted(path for name in LOOKS for path in folder.glob(f"{name}/*.txt")):
        name = f"{path.parent.name}/{path.name.removesuffix('.txt').removesuffix('.chunks')}"
        try:
            lines = path.read_text(encoding="utf-8").split("\n")  # splitlines would cut inside texts
            cells, problems = asyncio.run(checked(path.parent.name, [line for line in lines if line.strip()]))
        except Exception as error:  # noqa: BLE001  # whatever it is, the other files are checked too
            cells, problems = ["-"] * 6 + ["FAILED"], [f"{type(error).__name__}: {error}"]
        failed |= any(not problem.startswith("unknown: ") for problem in problems)
        rows.append([name, *cells])
        notes += [f"{name}: {problem}" for problem in problems]
    if len(rows) == 1:
        notes, failed = [f"{folder} has no streams: *.txt files in folders named {', '.join(LOOKS)}."], True
    print(table(rows), *notes, sep="\n")  # noqa: T201  # a command
    return int(failed)


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004  # the command and one argument
        sys.exit("usage: python -m midstream.adapters.check FOLDER")
    sys.exit(main(Path(sys.argv[1])))
