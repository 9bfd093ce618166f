"""The midstream protocol: model, frames, calls, codecs and the merge law. Pure; see SPEC.md.

The modules, each importing only those before it: values, errors, limits, model, transitions, parts,
frames, calls, scan, wording, codec, chunks, digest, live, outcomes, window, pages, turns, merge. Structs are
imported from their modules; what is done with them is here too.
"""

from midstream.protocol.chunks import ChunkAssembler, chunks
from midstream.protocol.codec import CODECS, JSON, MSGPACK, Codec
from midstream.protocol.digest import canonical, content_hash, message_digest
from midstream.protocol.errors import MidstreamError
from midstream.protocol.limits import DEFAULT_LIMITS, PROTOCOL_VERSION, Limits
from midstream.protocol.live import LiveMessage
from midstream.protocol.merge import Replica, SavedReplica, Stage
from midstream.protocol.outcomes import Applied, Gap, Ignored, PageOutcome
from midstream.protocol.parts import check_input, check_part, check_response
from midstream.protocol.transitions import check, check_update, is_open

__all__ = [
    "CODECS",
    "DEFAULT_LIMITS",
    "JSON",
    "MSGPACK",
    "PROTOCOL_VERSION",
    "Applied",
    "ChunkAssembler",
    "Codec",
    "Gap",
    "Ignored",
    "Limits",
    "LiveMessage",
    "MidstreamError",
    "PageOutcome",
    "Replica",
    "SavedReplica",
    "Stage",
    "canonical",
    "check",
    "check_input",
    "check_part",
    "check_response",
    "check_update",
    "chunks",
    "content_hash",
    "is_open",
    "message_digest",
]
