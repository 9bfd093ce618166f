"""The midstream server, and the API that agents in its process are written to."""

from midstream.protocol.limits import Limits
from midstream.protocol.model import Question, QuestionOption
from midstream.server.config import Config, ConfigError
from midstream.server.server import RunningServer, Server
from midstream.server.sessions.agents import Agent, Answers, Approval, Turn, TurnFailed
from midstream.server.sessions.open_parts import Action, TextStream, ToolCall
from midstream.server.sessions.state import TurnEnded
from midstream.server.sessions.steps import Step

__all__ = [
    "Action",
    "Agent",
    "Answers",
    "Approval",
    "Config",
    "ConfigError",
    "Limits",
    "Question",
    "QuestionOption",
    "RunningServer",
    "Server",
    "Step",
    "TextStream",
    "ToolCall",
    "Turn",
    "TurnEnded",
    "TurnFailed",
]
