"""The client: a replica of each session, and the connection that keeps it equal to the server.

>>> from midstream.client import Client
>>> Client("http://127.0.0.1:8787")
Traceback (most recent call last):
ValueError: url is 'http://127.0.0.1:8787', but must begin with ws:// or wss://
"""

from midstream.client.client import Client, Options
from midstream.client.clock import Clock, SystemClock
from midstream.client.errors import (
    AlreadyExists,
    ClientClosed,
    ClientError,
    ConnectionLost,
    ConnectionRejected,
    Forbidden,
    IdempotencyConflict,
    IncompatibleServer,
    InputCancelled,
    InteractionClosed,
    InternalError,
    InvalidRequest,
    LimitExceeded,
    MidstreamError,
    NotFound,
    OutboxFull,
    Overloaded,
    Refused,
    SessionClosed,
    TimedOut,
    Unavailable,
    UnknownMethod,
)
from midstream.client.history import Difference, VerifyReport
from midstream.client.link import LinkState
from midstream.client.mutations import Mutation, ReplicaReset, TextAppended
from midstream.client.reconnect import Policy
from midstream.client.session import Session
from midstream.client.sessions import ListState, SessionList
from midstream.client.streams import Stream
from midstream.client.subscription import SessionState
from midstream.client.turns import HandleState, TurnHandle
from midstream.protocol.calls import PendingInteraction, PromptResult, StopResult
from midstream.protocol.frames import Signal
from midstream.protocol.model import Message, Turn
from midstream.protocol.model import Session as SessionInfo

__all__ = [
    "AlreadyExists",
    "Client",
    "ClientClosed",
    "ClientError",
    "Clock",
    "ConnectionLost",
    "ConnectionRejected",
    "Difference",
    "Forbidden",
    "HandleState",
    "IdempotencyConflict",
    "IncompatibleServer",
    "InputCancelled",
    "InteractionClosed",
    "InternalError",
    "InvalidRequest",
    "LimitExceeded",
    "LinkState",
    "ListState",
    "Message",
    "MidstreamError",
    "Mutation",
    "NotFound",
    "Options",
    "OutboxFull",
    "Overloaded",
    "PendingInteraction",
    "Policy",
    "PromptResult",
    "Refused",
    "ReplicaReset",
    "Session",
    "SessionClosed",
    "SessionInfo",
    "SessionList",
    "SessionState",
    "Signal",
    "StopResult",
    "Stream",
    "SystemClock",
    "TextAppended",
    "TimedOut",
    "Turn",
    "TurnHandle",
    "Unavailable",
    "UnknownMethod",
    "VerifyReport",
]
