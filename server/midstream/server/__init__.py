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
from midstream.server.connections.auth import Authentication, TokenRefused
from midstream.server.server import RunningServer, Server
from midstream.server.sessions.access import Authorization, ByToken, Identity, SessionRef
from midstream.server.storage.records import Selection

__all__ = [
    "Action",
    "Agent",
    "Answers",
    "Approval",
    "Authentication",
    "Authorization",
    "ByToken",
    "Config",
    "ConfigError",
    "Identity",
    "Limits",
    "Question",
    "QuestionOption",
    "RunningServer",
    "Selection",
    "Server",
    "SessionRef",
    "Step",
    "TextStream",
    "TokenRefused",
    "ToolCall",
    "ToolOutcome",
    "Turn",
    "TurnEnded",
    "TurnFailed",
]
