"""The API that agents are written to, in the server's process and in a worker of their own alike."""

from midstream.agents.errors import TurnEnded, TurnFailed
from midstream.agents.open_parts import Action, TextStream, ToolCall
from midstream.agents.outcomes import Answers, Approval, ToolOutcome
from midstream.agents.step import Step
from midstream.agents.turn import Agent, Turn
from midstream.protocol.agents import Context
from midstream.protocol.model import Question, QuestionOption

__all__ = [
    "Action",
    "Agent",
    "Answers",
    "Approval",
    "Context",
    "Question",
    "QuestionOption",
    "Step",
    "TextStream",
    "ToolCall",
    "ToolOutcome",
    "Turn",
    "TurnEnded",
    "TurnFailed",
]
