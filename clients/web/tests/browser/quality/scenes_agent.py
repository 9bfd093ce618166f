"""The agent of the page's quality tests: the demo agent, and scenes that stand still to be looked at.

A prompt begins with the name of a scene, or is answered by the demo agent, without pauses. A scene ends in
the middle of what it does, and stays there until it is stopped.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING

from midstream.server.agents.demo import demo_agent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from midstream.agents import Turn

DEMO = demo_agent(speed=0)

THOUGHT = """\
The question is what a boat needs to catch up. It has the log up to line 214. The keeper's copy is longer,
so the difference is all that must be sent. If the keeper's copy were shorter, the boat would have to
"""

ANSWER = """\
## How a boat catches up

It says the last line that it has, and the keeper reads what came after it:

```python
def missed(log: list[str], seen: int) -> list[str]:
    \"\"\"Return the lines after the last one that was seen.\"\"\"
    return log[seen:]
```

That is all. There are *two* cases:

1. The keeper still has the lines: they are **read again**.
2. The book was replaced: the boat gets a new copy, and
"""

WIDE = """\
A line of code that is far too wide for a phone, and for most columns of text as well:

```ts
export const answer = async (asker: string, options: { readonly patience: number; readonly tone: "calm" | "brisk" }): Promise<string> => think(asker, options);
```

| one | two | three | four | five | six | seven |
|---|---|---|---|---|---|---|
| a rather wide cell | 2 | 3 | 4 | 5 | a rather wide cell | 7 |

And https://example.org/an/address/that/has/no/place/to/break/and/goes/on/and/on/until/the/end/of/the/line.
"""  # noqa: E501 - that is what it is for

PICTURE = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='640' height='360'%3E"
    "%3Crect width='640' height='360' fill='%230f6b5c'/%3E"
    "%3Ccircle cx='320' cy='180' r='96' fill='%23fbfaf8'/%3E%3C/svg%3E"
)

BLOCK = """\
### Part {number}

A paragraph with *emphasis*, **weight**, `code` and a [link](https://example.org/{number}), long enough to
wrap on a phone, and on a desk as well, because it goes on for a while.

```ts
export function part{number}(lines: readonly string[], from: number): string[] {{
  return lines.slice(from).map((line) => line.trimEnd()); // as the keeper reads them
}}
```

- one thing, and
- another, with | a bar

| berth | ship | since |
|---|---|---|
| {number} | Aurora | dusk |

"""


async def agent(turn: Turn) -> None:
    """Play the scene that the prompt names, or answer as the demo agent does."""
    name, _, rest = turn.prompt_text.partition(" ")
    scene = SCENES.get(name)
    await (scene(turn, rest) if scene else DEMO(turn))


async def thinking(turn: Turn, _: str) -> None:
    """Stop in the middle of a thought."""
    async with turn.step() as step, step.reasoning() as thought:
        await thought.append(THOUGHT.replace("\n", " ").strip())
        await _stand_still()


async def writing(turn: Turn, _: str) -> None:
    """Think, and stop in the middle of an answer."""
    async with turn.step() as step:
        async with step.reasoning() as thought:
            await thought.append("A short answer with an example is best.")
        async with step.text() as text:
            await text.append(ANSWER.strip())
            await _stand_still()


async def working(turn: Turn, _: str) -> None:
    """Use tools: one is done, one failed, one runs, and one is still being called."""
    async with turn.step() as step:
        async with step.text() as text:
            await text.append("I look into the harbour's books.")
        found = await step.tool("find_log", input={"berth": 12, "since": "dusk"}, title="Find the log")
        broken = await step.tool("read_tide", input={"place": "north pier"}, title="Read the tide")
        counting = await step.tool(
            "count_boats", input={"from": "harbour", "to": "cape"}, title="Count boats"
        )
    async with turn.step() as step:
        await found.run()
        await found.complete({"lines": 214, "keeper": "Ann"})
        await broken.run()
        await broken.fail("The gauge does not answer. It is read again in an hour.")
        await counting.run()
        await counting.progress({"counted": 17})
        calling = await step.tool("send_signal", title="Send a signal")
        await calling.append_input('{"lamp": "green", "times": 3, "to": "')
        await _stand_still()


async def reading(turn: Turn, _: str) -> None:
    """Answer with what is wider than any column, and with files."""
    async with turn.step() as step:
        async with step.text() as text:
            await text.append(WIDE)
        await step.file(PICTURE, "image/svg+xml", filename="harbour.svg")
        await step.file("data:text/plain,214", "text/plain", filename="log.txt")
        await step.source_url("https://example.org/harbour", title="The harbour's own page")


async def flood(turn: Turn, rest: str) -> None:
    """Stream so many tokens of Markdown: `flood COUNT RATE`, RATE in tokens a second, 0 without pauses."""
    count, rate = (int(number) for number in rest.split())
    began = time.monotonic()
    async with turn.step() as step, step.text() as text:
        for sent, token in zip(range(count), _tokens(), strict=False):
            if rate:
                await asyncio.sleep(began + sent / rate - time.monotonic())
            await text.append(token)


def _tokens() -> Iterator[str]:
    """Markdown without end, in tokens of about four characters, as models have them."""
    number = 0
    while True:
        number += 1
        yield from re.findall(r".{1,4}", BLOCK.format(number=number), re.DOTALL)


async def _stand_still() -> None:
    await asyncio.Event().wait()


SCENES: dict[str, Callable[[Turn, str], Awaitable[None]]] = {
    "thinking": thinking,
    "writing": writing,
    "working": working,
    "reading": reading,
    "flood": flood,
}
