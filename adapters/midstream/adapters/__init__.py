"""The adapters of midstream: a model provider's stream goes into a step with one call.

``fed = await step.feed(stream)`` writes what the provider's own client streams as parts that
everybody in the session sees grow; see :mod:`midstream.adapters.feeding`.
"""

from midstream.adapters import events
from midstream.adapters.fed import Fed
from midstream.adapters.feeding import feed
from midstream.adapters.reader import Reader

__all__ = ["Fed", "Reader", "events", "feed"]
