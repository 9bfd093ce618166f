"""The conformance kit: runs the rules of SPEC.md against anybody's server or client, over the wire alone.

It imports the protocol and websockets, and nothing of this project's server or client: what it tests may be
written in any language. `server` has the cases for servers, `client` those for clients; both share the case,
the runner, the reports and the proxy.
"""

from midstream.conformance.case import Case, Suite
from midstream.conformance.outcome import Failed, Outcome, Result, Skipped
from midstream.conformance.proxy import Faults, Proxy, proxy_to
from midstream.conformance.report import Report
from midstream.conformance.runner import run

__all__ = [
    "Case",
    "Failed",
    "Faults",
    "Outcome",
    "Proxy",
    "Report",
    "Result",
    "Skipped",
    "Suite",
    "proxy_to",
    "run",
]
