"""Runs agents for a midstream server in a process of their own: the same agents, the same API (SPEC 14)."""

from midstream.client.errors import ConnectionRejected, MidstreamError
from midstream.client.reconnect import Policy
from midstream.worker.worker import Worker, WorkerOptions

__all__ = ["ConnectionRejected", "MidstreamError", "Policy", "Worker", "WorkerOptions"]
