"""What two workers say to each other on a data socket, as bytes. Pure, and bounded: whatever a peer
sends is read as a frame or refused.

A frame is its kind (one byte), the length of its body (four) and the body. `Blocks` is followed by
the blocks themselves, whose size both sides know. The sender speaks first: `Hello`, and is answered
`Welcome` or `Refused`; then blocks, layer by layer or step by step; then `End`, answered likewise.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

LARGEST_BODY: Final = 1 << 16
MOST_BLOCKS: Final = 1024
"""Blocks of one layer in one frame."""

LARGEST_ID: Final = 128
_LARGEST_TEXT: Final = 512
_NONCE: Final = 32
HEADER: Final = struct.Struct("!BI")
_HELLO: Final = struct.Struct(f"!{_NONCE}s{_NONCE}sHI")
_BLOCKS: Final = struct.Struct("!HHB")
_WELCOME: Final = struct.Struct("!I")


class BadFrame(ValueError):
    """Bytes that are no frame, or one that may not come now."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Who wants to write, and into which lease. `memory`: how its own may be read, where blocks are
    fetched by the receiver."""

    lease: str
    nonce: bytes
    fingerprint: bytes
    memory: bytes = b""


@dataclass(frozen=True, slots=True)
class Welcome:
    """Go on; at the end: so many blocks from the first on are here whole."""

    blocks: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """Why not, for a person."""

    reason: str


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of one layer: their places in the lease. `sources`: where the receiver is to fetch
    them; without any, their bytes follow."""

    layer: int
    places: tuple[int, ...]
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class End:
    """All has been sent."""


Frame: TypeAlias = Hello | Welcome | Refused | Blocks | End
_KINDS: Final = {Hello: 1, Welcome: 2, Refused: 3, Blocks: 4, End: 5}


def encoded(frame: Frame) -> bytes:
    """The frame's bytes, without the blocks that follow it."""
    body = _body(frame)
    return HEADER.pack(_KINDS[type(frame)], len(body)) + body


def _body(frame: Frame) -> bytes:
    match frame:
        case Hello():
            lease = frame.lease.encode()
            told = _HELLO.pack(frame.nonce, frame.fingerprint, len(lease), len(frame.memory))
            return told + lease + frame.memory
        case Welcome():
            return _WELCOME.pack(frame.blocks)
        case Refused():
            return frame.reason.encode(errors="replace")[:_LARGEST_TEXT]
        case Blocks():
            told = _BLOCKS.pack(frame.layer, len(frame.places), bool(frame.sources))
            numbers = (*frame.places, *frame.sources)
            return told + struct.pack(f"!{len(numbers)}I", *numbers)
        case End():
            return b""


def length(header: bytes) -> tuple[int, int]:
    """Kind and length of the body that follows. Raises `BadFrame`."""
    kind, size = HEADER.unpack(header)
    if kind not in _KINDS.values():
        raise BadFrame(f"there is no kind {kind}")
    if size > LARGEST_BODY:
        raise BadFrame(f"a frame of {size} bytes")
    return kind, size


def decoded(kind: int, body: bytes) -> Frame:
    """The frame. Raises `BadFrame`."""
    try:
        return _frame(kind, body)
    except (struct.error, UnicodeDecodeError) as error:
        raise BadFrame(str(error)) from None


def _frame(kind: int, body: bytes) -> Frame:
    if kind == _KINDS[Hello]:
        return _hello(body)
    if kind == _KINDS[Welcome]:
        return Welcome(*_WELCOME.unpack(body))
    if kind == _KINDS[Refused]:
        return Refused(body[:_LARGEST_TEXT].decode(errors="replace"))
    if kind == _KINDS[Blocks]:
        return _blocks(body)
    if kind == _KINDS[End] and not body:
        return End()
    raise BadFrame(f"kind {kind} with {len(body)} bytes")


def _hello(body: bytes) -> Hello:
    nonce, fingerprint, lease, memory = _HELLO.unpack(body[: _HELLO.size])
    if not 0 < lease <= LARGEST_ID or len(body) != _HELLO.size + lease + memory:
        raise BadFrame("a hello of another length")
    rest = body[_HELLO.size :]
    return Hello(rest[:lease].decode(), nonce, fingerprint, rest[lease:])


def _blocks(body: bytes) -> Blocks:
    layer, count, fetched = _BLOCKS.unpack(body[: _BLOCKS.size])
    if not 0 < count <= MOST_BLOCKS or fetched > 1:
        raise BadFrame(f"{count} blocks in one frame")
    numbers = struct.unpack(f"!{count * (1 + fetched)}I", body[_BLOCKS.size :])
    if len(set(numbers[:count])) != count:
        raise BadFrame("a block twice in one frame")
    return Blocks(layer, numbers[:count], numbers[count:])
