"""How simulated engines move KV: no bytes of it, over a real connection, in the time it takes.

The sender says which lease it means and shows its nonce; then it tells of blocks as they would
arrive, and the receiver says when all are there. Each line is a JSON object.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from dataclasses import dataclass
from typing import Any, Final

from penstock.replica.microserving.values import Cause, KvAddress, KvRank, MicroServingError

PATIENCE_S: Final = 10.0
"""For the other side's next word."""

_MOST_LINE: Final = 4096  # bytes
_PIECE_S: Final = 0.02  # seconds between two words of a sender

_CAUSES: Final = ("no_lease", "fingerprint", "bad_request")


@dataclass(frozen=True, slots=True)
class Pace:
    """How long KV takes."""

    bytes_per_block: int
    bytes_per_second: float  # 0: as fast as it goes
    begin_s: float  # until the first byte

    def seconds(self, blocks: int) -> float:
        """From the first word to the last block."""
        moved = blocks * self.bytes_per_block
        return self.begin_s + (moved / self.bytes_per_second if self.bytes_per_second else 0.0)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a sender begins with. `first`, `blocks`: of the prompt."""

    lease: str
    nonce: bytes
    fingerprint: str
    first: int
    blocks: int


def offer_of(told: dict[str, Any]) -> Offer:
    """The first word of a sender. Raises `MicroServingError`."""
    try:
        nonce = bytes.fromhex(told["nonce"])
        offer = Offer(
            told["lease"], nonce, told["fingerprint"], int(told["first"]), int(told["blocks"])
        )
    except (KeyError, TypeError, ValueError):
        raise MicroServingError("bad_request", "the sender's first word is none") from None
    if not isinstance(offer.lease, str) or not isinstance(offer.fingerprint, str):
        raise MicroServingError("bad_request", "the sender's first word is none")
    return offer


async def send(address: KvAddress, to: KvRank, first: int, blocks: int, pace: Pace) -> None:
    """Moves blocks; returns when the receiver has them. Raises `MicroServingError`."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(to.host, to.port, limit=_MOST_LINE)
    except (OSError, TimeoutError) as error:
        raise MicroServingError("transfer", f"no way to {to.host}:{to.port}: {error!r}") from None
    try:
        await _send(reader, writer, address, first, blocks, pace)
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise MicroServingError("transfer", f"{to.host}:{to.port} is gone: {error!r}") from None
    finally:
        writer.close()


async def _send(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    address: KvAddress,
    first: int,
    blocks: int,
    pace: Pace,
) -> None:
    offer = {"lease": address.lease, "nonce": address.nonce.hex(), "first": first}
    write_word(writer, offer | {"blocks": blocks, "fingerprint": address.fingerprint})
    _agreed(await read_word(reader))
    began, seconds = time.monotonic(), pace.seconds(blocks)
    pieces = min(max(1, math.ceil(seconds / _PIECE_S)), blocks)
    for piece in range(1, pieces + 1):
        await _pause(reader, began + seconds * piece / pieces - time.monotonic())
        write_word(writer, {"arrived": blocks * piece // pieces})
        await writer.drain()
    _agreed(await read_word(reader))


async def _pause(reader: asyncio.StreamReader, seconds: float) -> None:
    """Waits; a receiver that says something before all has arrived wants no more."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(seconds, 0)):
            _agreed(await read_word(reader, seconds + PATIENCE_S))
            raise ConnectionError("the receiver speaks before its turn")


def _agreed(word: dict[str, Any]) -> None:
    if "cause" not in word:
        return
    told = str(word["cause"])
    cause: Cause = told if told in _CAUSES else "transfer"  # type: ignore[assignment]
    raise MicroServingError(cause, str(word.get("message", ""))[:500])


async def read_word(reader: asyncio.StreamReader, patience: float = PATIENCE_S) -> dict[str, Any]:
    """The other side's next word. Raises `OSError` where it is none, or says no more."""
    async with asyncio.timeout(patience):
        with contextlib.suppress(ValueError, RecursionError):
            line = await reader.readline()
            word = json.loads(line) if line.endswith(b"\n") else None
            if isinstance(word, dict):
                return word
    raise ConnectionError("the connection ended, or what came is no word")


def write_word(writer: asyncio.StreamWriter, word: dict[str, Any]) -> None:
    """Says something to the other side."""
    writer.write(json.dumps(word).encode() + b"\n")
