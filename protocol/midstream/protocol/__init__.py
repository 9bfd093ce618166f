"""The midstream protocol: model, frames, calls, codecs and the merge law. Pure; see SPEC.md."""

from midstream.protocol.chunks import ChunkAssembler, chunks
from midstream.protocol.codec import CODECS, JSON, MSGPACK, Codec
from midstream.protocol.digest import canonical, content_hash, message_digest

__all__ = [
    "CODECS",
    "JSON",
    "MSGPACK",
    "ChunkAssembler",
    "Codec",
    "canonical",
    "chunks",
    "content_hash",
    "message_digest",
]
