"""What the demo agent says."""

from __future__ import annotations

from midstream.protocol.model import Question, QuestionOption

HINT = "Type **help** for the words that make me do more."
FIRST_HINT = """\
Words such as **tool**, **question**, **delete** and **long** make me do things; **everything** does it all,
and **help** has the whole list. What you type while I answer reaches me between my steps."""

HELP = """\
These words make me do things:

- **tool**: count the words of your message, with a tool
- **dice**: roll two dice
- **question**: take an order for a pizza, by asking you
- **note** *text*: keep a note in this session; **notes** lists them
- **delete**: delete the last note, if you approve
- **long**: tell a longer story; type something meanwhile, or stop me
- **action**, **source**, **data**: show what else a message can hold
- **error**, **fail**: go wrong, with and without recovering
- **everything**: nearly all of it, one after the other
"""

STORY = (
    """\
## The harbour

A harbour keeps no ship. It keeps the *places* for ships: a number for each berth, a book that says who lay
where, and a lamp that is lit at dusk whether anyone comes or not.
""",
    """\
## The fog

One night the fog came in so thick that the boats lost sight of the lamp. They did not lose the harbour. Each
knew the last line that it had read in the book, and called it out:

> I have the log up to line 214.

and the keeper read them what came after it, no more and no less.
""",
    """\
## The morning

When the sun was up, every boat had the same log:

1. those that had never left,
2. those that had drifted out and back,
3. and the one whose captain had slept through everything.

Nobody could tell which was which. **That was the point.**
""",
)

ORDER = (
    Question(
        question_id="size",
        question="How hungry are you?",
        options=[
            QuestionOption(value="small", label="A little", description="26 cm"),
            QuestionOption(value="large", label="Very", description="36 cm"),
        ],
    ),
    Question(
        question_id="toppings",
        question="What goes on top?",
        options=[
            QuestionOption(value=value, label=value.capitalize())
            for value in ("mushrooms", "olives", "peppers", "basil")
        ],
        multiple=True,
    ),
    Question(question_id="wish", question="Anything that the kitchen should know?"),
)
"""One choice, several choices, and free text."""
ORDER_HEAD = "| size | toppings | wish |\n|---|---|---|"
