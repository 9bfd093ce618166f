"""Every metric of a server: its name, its kind, its labels, what it means, and where it is read.

One table. Everything is gathered when somebody asks, from numbers that are kept anyway
(:mod:`midstream.server.tally`) and from a look at what there is, so that nothing is paid while nobody asks.
Labels have values out of tables of ours, never an id, a name, a subject or a text, so there are as many
series for a million sessions as for one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from midstream.server.tally import Histogram

if TYPE_CHECKING:
    from midstream.server.connections.probes import Census as Connections
    from midstream.server.sessions.registry import Census as Sessions
    from midstream.server.tally import StorageTally, Tally

PROCESS: Final = (
    "process_cpu_seconds_total",
    "process_max_fds",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
    "python_gc_collections_total",
    "python_gc_objects_collected_total",
    "python_gc_objects_uncollectable_total",
)
"""What prometheus-client tells of the process."""


class Workers(NamedTuple):
    """What there is where workers run the turns."""

    workers: int
    slots: int
    waiting: int
    offers: Mapping[str, int]


class View(NamedTuple):
    """All that metrics are read from, at one moment."""

    tally: Tally
    storage: StorageTally
    connections: Connections
    sessions: Sessions
    workers: Workers | None
    """None where turns run in the server."""
    ready: bool
    version: str
    file_bytes: Mapping[str, int]


Number: TypeAlias = float
Read: TypeAlias = (
    Number | Histogram | Mapping[str, Number] | Mapping[tuple[str, str], Number] | Mapping[str, Histogram]
)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. ``name`` is without the ending of its kind in Prometheus (``_total``, ``_bucket``)."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    read: Callable[[View], Read | None]
    """Gives None where this server has no such thing."""
    labels: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The names that it has in an expression."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{ending}" for ending in ("bucket", "sum", "count"))
        return (f"{self.name}_total",) if self.kind == "counter" else (self.name,)


METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        "midstream_info", "gauge", "1, with the version of midstream.", lambda v: {v.version: 1}, ("version",)
    ),
    Metric("midstream_ready", "gauge", "1 while /readyz says 200, else 0.", lambda v: int(v.ready)),
    # connections
    Metric(
        "midstream_connections",
        "gauge",
        "Connections: handshake (a socket without a WebSocket yet), hello, open, over (it closes).",
        lambda v: {
            state: v.connections.states.get(state, 0) for state in ("handshake", "hello", "open", "over")
        },
        ("state",),
    ),
    Metric(
        "midstream_connections_opened", "counter", "WebSockets that were opened.", lambda v: v.tally.opened
    ),
    Metric("midstream_hellos", "counter", "Connections that were welcomed.", lambda v: v.tally.hellos),
    Metric(
        "midstream_connections_closed",
        "counter",
        "Connections that ended, by who ended them and the close code; 1006 is none, other a rare one.",
        lambda v: v.tally.closes,
        ("by", "code"),
    ),
    Metric(
        "midstream_stalls",
        "counter",
        "Connections that were cut because their peer did not read.",
        lambda v: v.tally.stalls,
    ),
    Metric(
        "midstream_http_answers",
        "counter",
        "Answers to requests that opened no WebSocket, refused handshakes among them, by HTTP status.",
        lambda v: v.tally.http,
        ("status",),
    ),
    Metric(
        "midstream_outbox_bytes",
        "gauge",
        "Bytes that wait for all connections.",
        lambda v: v.connections.outbox_bytes,
    ),
    Metric(
        "midstream_outbox_largest_bytes",
        "gauge",
        "Bytes that wait for the connection that most wait for.",
        lambda v: v.connections.longest_outbox,
    ),
    # calls
    Metric(
        "midstream_call_seconds",
        "histogram",
        "Calls, from taking one to its answer, by method; other is an unknown one.",
        lambda v: {method: one for method, one in v.tally.calls.items() if one.count},
        ("method",),
    ),
    Metric(
        "midstream_refusals",
        "counter",
        "Errors that were sent to clients, by code.",
        lambda v: v.tally.refusals,
        ("code",),
    ),
    # what is published
    Metric(
        "midstream_versions",
        "counter",
        "Versions that were published: text, and changes of messages, turns and sessions.",
        lambda v: v.sessions.versions,
    ),
    Metric(
        "midstream_deliveries",
        "counter",
        "Publications times the readers whom they reached, in their socket or outbox.",
        lambda v: v.tally.deliveries,
    ),
    Metric(
        "midstream_fanout_seconds",
        "histogram",
        "Publications of text that were due together, until every reader's socket or outbox has them.",
        lambda v: v.tally.fan_out,
    ),
    Metric(
        "midstream_flush_seconds",
        "histogram",
        "From entering an outbox that was empty to being written; on one connection of eight.",
        lambda v: v.tally.flush,
    ),
    Metric(
        "midstream_subscriptions",
        "gauge",
        "Subscriptions: starting, live, behind (a sync is owed), paced.",
        lambda v: {
            state: v.connections.subscriptions.get(state, 0)
            for state in ("starting", "live", "behind", "paced")
        },
        ("state",),
    ),
    Metric(
        "midstream_syncs",
        "counter",
        "Syncs that were sent, by what they hold: a replay, a catch-up, or all anew (reset).",
        lambda v: v.tally.syncs,
        ("mode",),
    ),
    Metric(
        "midstream_sync_bytes", "counter", "Bytes of these, encoded.", lambda v: v.tally.sync_bytes, ("mode",)
    ),
    Metric(
        "midstream_conflations",
        "counter",
        "Syncs to readers who had fallen behind, in place of the changes that they had no room for.",
        lambda v: v.tally.conflations,
    ),
    Metric("midstream_watchers", "gauge", "Watches of the list of sessions.", lambda v: v.sessions.watchers),
    # sessions and turns
    Metric("midstream_sessions_loaded", "gauge", "Sessions in memory.", lambda v: v.sessions.loaded),
    Metric(
        "midstream_session_loads",
        "counter",
        "Loads of sessions: loaded, missing (there is none), failed (its storage did).",
        lambda v: v.tally.loads,
        ("outcome",),
    ),
    Metric(
        "midstream_mailbox_commands", "gauge", "Calls that wait for sessions.", lambda v: v.sessions.mailbox
    ),
    Metric(
        "midstream_mailbox_largest_commands",
        "gauge",
        "Calls that wait for the session that most wait for.",
        lambda v: v.sessions.longest_mailbox,
    ),
    Metric("midstream_turns_running", "gauge", "Turns that run.", lambda v: v.sessions.turns),
    Metric(
        "midstream_turns_ended",
        "counter",
        "Turns that ended, by how.",
        lambda v: v.tally.turns_ended,
        ("state",),
    ),
    # workers
    Metric(
        "midstream_workers",
        "gauge",
        "Workers that are registered.",
        lambda v: v.workers and v.workers.workers,
    ),
    Metric(
        "midstream_worker_slots",
        "gauge",
        "Turns that they take at a time, in all.",
        lambda v: v.workers and v.workers.slots,
    ),
    Metric(
        "midstream_turns_waiting",
        "gauge",
        "Running turns that no worker holds.",
        lambda v: v.workers and v.workers.waiting,
    ),
    Metric(
        "midstream_offers",
        "counter",
        "Turns offered to workers: made, taken, declined; abandoned are turns that nobody took in time.",
        lambda v: v.workers and v.workers.offers,
        ("outcome",),
    ),
    # storage
    Metric(
        "midstream_commit_seconds",
        "histogram",
        "Writes, from handing one in until it is on disk.",
        lambda v: v.storage.commit_seconds,
    ),
    Metric(
        "midstream_commit_batch_seconds",
        "histogram",
        "Batches of writes: what SQLite and the disk took for each.",
        lambda v: v.storage.batch_seconds,
    ),
    Metric(
        "midstream_commit_batch_writes", "histogram", "Writes in a batch.", lambda v: v.storage.batch_jobs
    ),
    Metric(
        "midstream_read_seconds", "histogram", "Reads from the database.", lambda v: v.storage.read_seconds
    ),
    Metric(
        "midstream_storage_errors",
        "counter",
        "Writes and reads that the storage failed, by code.",
        lambda v: v.storage.errors,
        ("code",),
    ),
    Metric(
        "midstream_database_bytes",
        "gauge",
        "Size of the database and of its write-ahead log.",
        lambda v: v.file_bytes,
        ("file",),
    ),
    # the process
    Metric(
        "midstream_loop_lag_seconds",
        "histogram",
        "How much later than planned the event loop calls, looked at four times a second.",
        lambda v: v.tally.lag,
    ),
)
