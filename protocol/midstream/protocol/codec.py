"""The two codecs: frames and params between bytes and Structs, in msgpack and in JSON (SPEC 3.2).

A good frame costs one msgspec decode: 0.35 µs for a call in msgpack, less for a delta (Python 3.11). What
is refused is read again by :mod:`midstream.protocol.scan`, to name the field in the caller's terms.

Decode a stranger's bytes on the main thread, or on one with as large a stack (8 MiB): msgspec's
depth is bounded by Python's recursion limit, so 100,000 levels are an error and no crash there, but
a thread with a small stack overflows before that limit.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Protocol, TypeAlias, TypeGuard, TypeVar, cast, get_args

import msgspec

from midstream.protocol.calls import PARAMS, RESULTS
from midstream.protocol.errors import (
    InvalidRequest,
    MalformedFrame,
    MidstreamError,
    UnknownFrame,
    UnknownMethod,
)
from midstream.protocol.frames import (
    Call,
    Chunk,
    ClientFrame,
    Hello,
    ServerFrame,
    ShortDelta,
    TaggedFrame,
    WriteFrame,
)
from midstream.protocol.limits import DEFAULT_LIMITS, SUBPROTOCOL_JSON, SUBPROTOCOL_MSGPACK
from midstream.protocol.scan import Token, json_tokens, msgpack_tokens, scan
from midstream.protocol.values import MAX_INTEGER, MAX_VALUES, Value, is_unicode, problem_in
from midstream.protocol.wording import named, translated

Input: TypeAlias = bytes | msgspec.Raw
T = TypeVar("T", covariant=True)  # noqa: PLC0105 - it is covariant as a decoder's result is
Fields: TypeAlias = dict[str, tuple[str, ...]]


class _Decoder(Protocol[T]):
    def decode(self, data: Input, /) -> T: ...


_REFUSALS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What msgspec raises for bad input (its ValidationError is a DecodeError)."""


def _fields(frames: object) -> Fields:
    """Map the tag of each frame of a union to the names of its elements, the tag's own first."""
    kinds = cast("tuple[type[msgspec.Struct], ...]", get_args(frames))
    return {str(kind.__struct_config__.tag): ("tag", *kind.__struct_fields__) for kind in kinds}


_CLIENT_FIELDS = _fields(ClientFrame)
_SERVER_FIELDS = _fields(TaggedFrame)
_WRITES = {"write", "a"}
"""The tags of frames that are answered by their channel and number (SPEC 14.6)."""
_SERVER_NESTING = 1_000
"""A server's values were checked when they came to it; this only bounds the search for a problem."""


class Codec(ABC):
    """One encoding of the protocol. Stateless: the two instances serve every connection."""

    name: ClassVar[str]
    subprotocol: ClassVar[str]
    binary: ClassVar[bool]
    """Whether frames are binary WebSocket messages; else they are text."""
    _numbers: ClassVar[bytes]
    """For each byte 1 where it begins an integer, else 0."""

    def __init__(self) -> None:
        self._value = cast("_Decoder[Value]", self._decoder(Value))
        self._client_frame = cast("_Decoder[ClientFrame]", self._decoder(ClientFrame))
        self._server_frame = cast("_Decoder[ServerFrame]", self._decoder(TaggedFrame))
        self._short_delta = cast("_Decoder[ServerFrame]", self._decoder(ShortDelta))
        self._params = {method: self._decoder(kind) for method, kind in PARAMS.items()}
        self._results = {method: self._decoder(kind) for method, kind in RESULTS.items()}

    @abstractmethod
    def _decoder(self, kind: object) -> _Decoder[msgspec.Struct]: ...

    @abstractmethod
    def _tokens(self, data: bytes) -> Iterator[Token]: ...

    @abstractmethod
    def _may_have_duplicates(self, value: Value, data: bytes) -> bool: ...

    @abstractmethod
    def _is_piece(self, piece: object) -> bool: ...

    def _broken(self, data: bytes) -> str:
        """Say what is wrong with the grammar of a refused frame; nothing where the scan finds all of that."""
        del data
        return ""

    def _salvaged_chunk(self, data: bytes) -> Chunk | None:
        """Return a chunk that the decoder refuses only because a code point is split there."""
        del data
        return None

    @abstractmethod
    def encode(self, value: object) -> bytes:
        """Encode a frame, a Struct or a plain value; JSON as UTF-8.

        What comes from outside must have been checked by :func:`~midstream.protocol.values.problem_in`.
        """

    def raw(self, value: object) -> msgspec.Raw:
        """Encode a value to stand inside a frame, for example as a result."""
        return msgspec.Raw(self.encode(value))

    def call(self, id: int, method: str, params: object) -> bytes:
        """Encode a call, and refuse here what the server would refuse as a value.

        Raises:
            InvalidRequest: a value that the protocol does not carry; names the field.

        """
        problem = problem_in(params, nesting=DEFAULT_LIMITS.nesting - 1, most=MAX_VALUES)
        if problem:
            raise InvalidRequest(problem[0] or "params", problem[1])
        return self.encode(Call(id, method, self.raw(params)))

    def decode_client_frame(self, data: bytes) -> ClientFrame:
        """Decode what a client sent. The params of a call stay encoded: see :meth:`decode_params`.

        Raises:
            MalformedFrame: no array with a string tag, or a chunk that cannot be read.
            UnknownFrame: the tag is not one of a client's.
            InvalidRequest: an element is wrong; ``call_id`` is that of the call, and ``write`` that of the
                write, where it could be read.

        """
        try:
            frame = self._client_frame.decode(data)
            # what a call carries is checked with its params; appended text is checked by its decoding
            value = self._value.decode(data) if isinstance(frame, (Hello, WriteFrame)) else None
        except _REFUSALS as error:
            salvaged = self._salvaged_chunk(data)
            if salvaged is None:
                raise self._refusal(data, _CLIENT_FIELDS, error, DEFAULT_LIMITS.nesting) from None
            frame, value = salvaged, None
        if value is not None:
            self._check_frame(frame, value, data)
        elif isinstance(frame, Chunk):
            self._check_piece(frame)
        return frame

    def decode_server_frame(self, data: bytes) -> ServerFrame | None:
        """Decode what a server sent; None for a tag that is not known here, which is to be ignored.

        The form is checked; the values are not, since the server checked them when they came to it.

        Raises:
            MalformedFrame: no array that begins with a string or an integer, or a chunk that cannot be read.
            InvalidRequest: an element is wrong.

        """
        try:
            # of a frame as it is mostly written, the second byte begins the first element
            if self._numbers[data[1]]:
                return self._short_delta.decode(data)
            frame = self._server_frame.decode(data)
        except (*_REFUSALS, IndexError):
            return self._unusual(data)
        if isinstance(frame, Chunk):
            self._check_piece(frame)
        return frame

    def _unusual(self, data: bytes) -> ServerFrame | None:
        """Read a frame that is not written as it mostly is, or say why it is refused."""
        try:
            return self._short_delta.decode(data)
        except _REFUSALS as error:
            untagged = error
        try:
            frame = self._salvaged_chunk(data) or self._server_frame.decode(data)
        except _REFUSALS as error:
            refusal = self._refusal(data, _SERVER_FIELDS, error, _SERVER_NESTING, untagged)
            if isinstance(refusal, UnknownFrame):
                return None
            raise refusal from None
        if isinstance(frame, Chunk):
            self._check_piece(frame)
        return frame

    def decode_params(
        self, method: str, raw: msgspec.Raw, *, nesting: int = DEFAULT_LIMITS.nesting
    ) -> tuple[msgspec.Struct, Value]:
        """Decode the params of a call: as the method's Struct, and as they were sent.

        ``nesting`` is the limit of the whole frame, which is one level above the params.

        Raises:
            UnknownMethod: the method is not one of :data:`~midstream.protocol.calls.PARAMS`.
            InvalidRequest: names the field by its path in the params, or ``params`` itself.

        """
        decoder = self._params.get(method)
        if decoder is None:
            raise UnknownMethod(method)
        data = bytes(raw)
        try:
            value = self._value.decode(data)
            params = decoder.decode(data)
        except _REFUSALS as error:
            raise self._located(data, error, nesting=nesting - 1) from None
        problem = self._problem(value, data, nesting - 1)
        if problem:
            raise InvalidRequest(problem[0] or "params", problem[1])
        return params, value

    def decode_result(self, method: str, raw: msgspec.Raw) -> msgspec.Struct:
        """Decode the result of a call as the method's Struct of :data:`~midstream.protocol.calls.RESULTS`.

        Raises:
            UnknownMethod: the method is not one of this version.
            InvalidRequest: names the field by its path in the result.

        """
        decoder = self._results.get(method)
        if decoder is None:
            raise UnknownMethod(method)
        try:
            return decoder.decode(raw)
        except _REFUSALS as error:
            raise self._located(bytes(raw), error, nesting=_SERVER_NESTING) from None

    def _problem(self, value: Value, data: bytes, nesting: int) -> tuple[str, str] | None:
        """Find what the protocol does not carry in ``value``, which was decoded from ``data``."""
        problem = problem_in(value, nesting=nesting, most=MAX_VALUES)
        if problem is None and self._may_have_duplicates(value, data):
            problem = scan(self._tokens(data), nesting=nesting).problem
        return problem

    def _check_frame(self, frame: ClientFrame, value: Value, data: bytes) -> None:
        """Refuse a frame that carries what the protocol does not carry."""
        problem = self._problem(value, data, DEFAULT_LIMITS.nesting)
        if problem is None:
            return
        refusal = InvalidRequest(
            named(problem[0], _CLIENT_FIELDS[str(frame.__struct_config__.tag)]), problem[1]
        )
        if isinstance(frame, WriteFrame):
            refusal.write = frame.channel, frame.n
        raise refusal

    def _check_piece(self, chunk: Chunk) -> None:
        if not self._is_piece(chunk.piece):
            raise MalformedFrame(f"the piece of chunk {chunk.n} is empty or of the wrong type")

    def _located(self, data: bytes, error: Exception, *, nesting: int) -> InvalidRequest:
        """Name the field of params, or of a result, that the decoder refused."""
        text = str(error)
        if isinstance(error, msgspec.ValidationError) and "[...]" not in text:
            field, problem = translated(text)
        else:
            found = scan(self._tokens(data), nesting=nesting)
            field, problem = found.problem or translated(found.broken or text)
        return InvalidRequest(field or "params", problem)

    def _refusal(
        self, data: bytes, known: Fields, error: Exception, nesting: int, untagged: Exception | None = None
    ) -> MidstreamError:
        """Say why a frame was refused: first whether it is one at all, then which element is wrong.

        ``untagged`` is why it is no short delta, where it might be one.
        """
        found = scan(self._tokens(data), nesting=nesting)
        tag = found.head[0] if found.head else None
        broken = found.broken or self._broken(data)
        if untagged and not broken and isinstance(tag, int) and not isinstance(tag, bool):
            path, problem = found.problem or translated(str(untagged), ShortDelta.__struct_fields__)
            return InvalidRequest(named(path, ShortDelta.__struct_fields__), problem)
        # a tag that is no text must not go back in an error: it could not be encoded
        if broken or not isinstance(tag, str) or not is_unicode(tag):
            return MalformedFrame(broken or "it is not an array with a string as its first element")
        if tag not in known:
            return UnknownFrame(tag)
        if tag == "chunk":
            return MalformedFrame(f"a chunk has a wrong element: {error}")
        path, problem = found.problem or translated(str(error), known[tag])
        refusal = InvalidRequest(named(path, known[tag]), problem)
        numbers = [one if _is_count(one) else None for one in found.head[1:]]
        if tag == "call" and numbers:
            refusal.call_id = numbers[0]
        elif tag in _WRITES and len(numbers) > 1 and numbers[0] is not None and numbers[1] is not None:
            refusal.write = numbers[0], numbers[1]
        return refusal


def _is_count(element: object) -> TypeGuard[int]:
    return isinstance(element, int) and not isinstance(element, bool) and 0 <= element <= MAX_INTEGER


class MsgpackCodec(Codec):
    """Frames as msgpack in binary messages (``midstream.v1.msgpack``)."""

    name = "msgpack"
    subprotocol = SUBPROTOCOL_MSGPACK
    binary = True
    _numbers = bytes([1] * 0x80 + [0] * 0x4C + [1] * 8 + [0] * 0x2C)  # 00 to 7f and cc to d3
    _encoder = msgspec.msgpack.Encoder()

    def encode(self, value: object) -> bytes:
        """Encode a frame, a Struct or a plain value."""
        return self._encoder.encode(value)

    def _decoder(self, kind: object) -> _Decoder[msgspec.Struct]:
        return cast("_Decoder[msgspec.Struct]", msgspec.msgpack.Decoder(kind))

    def _tokens(self, data: bytes) -> Iterator[Token]:
        return msgpack_tokens(data)

    def _may_have_duplicates(self, value: Value, data: bytes) -> bool:
        # equal bytes prove that nothing was lost; other encoders may write the same value otherwise
        return self._encoder.encode(value) != data

    def _is_piece(self, piece: object) -> bool:
        return isinstance(piece, bytes) and len(piece) > 0


class JsonCodec(Codec):
    """Frames as JSON in text messages (``midstream.v1.json``)."""

    name = "json"
    subprotocol = SUBPROTOCOL_JSON
    binary = False
    _numbers = bytes(code in b"-0123456789" for code in range(256))
    _encoder = msgspec.json.Encoder()

    def encode(self, value: object) -> bytes:
        """Encode a frame, a Struct or a plain value, as UTF-8."""
        return self._encoder.encode(value)

    def _decoder(self, kind: object) -> _Decoder[msgspec.Struct]:
        return cast("_Decoder[msgspec.Struct]", msgspec.json.Decoder(kind))

    def _tokens(self, data: bytes) -> Iterator[Token]:
        return json_tokens(data)

    def _may_have_duplicates(self, value: Value, data: bytes) -> bool:
        if self._encoder.encode(value) == data:
            return False
        lost = False

        def notice(pairs: list[tuple[str, object]]) -> dict[str, object]:
            nonlocal lost
            together = dict(pairs)
            lost = lost or len(together) < len(pairs)
            return together

        json.loads(data, object_pairs_hook=notice)
        return lost

    def _is_piece(self, piece: object) -> bool:
        return isinstance(piece, str) and len(piece) > 0

    def _broken(self, data: bytes) -> str:
        try:
            # strict about commas, which the scan is not; numbers are not converted: they may be very long
            json.loads(data, parse_int=str, parse_float=str)
        except RecursionError:
            return ""  # too deep: the scan names where
        except ValueError as error:
            return str(error)
        return ""

    def _salvaged_chunk(self, data: bytes) -> Chunk | None:
        try:
            frame = json.loads(data)
            # a sender that counts UTF-16 units may cut a code point in two; the assembler joins it again
            return msgspec.convert(frame, Chunk)
        except (ValueError, RecursionError):
            return None


MSGPACK = MsgpackCodec()
JSON = JsonCodec()
CODECS: dict[str, Codec] = {codec.subprotocol: codec for codec in (MSGPACK, JSON)}
"""The codec of each WebSocket subprotocol, the preferred one first."""
