"""The midstream server, and the API that agents are written to (:mod:`midstream.agents`)."""

from midstream.agents import (
    Action,
    Agent,
    Answers,
    Approval,
    Question,
    QuestionOption,
    Step,
    TextStream,
    ToolCall,
    ToolOutcome,
    Turn,
    TurnEnded,
    TurnFailed,
)
from midstream.protocol.limits import Limits
from midstream.server.config import Config, ConfigError
from midstream.server.server import RunningServer, Server

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
    "ToolOutcome",
    "Turn",
    "TurnEnded",
    "TurnFailed",
]
