"""How many values a body's JSON has, known before it is parsed.

Parsing and judging it takes the loop that answers everybody, by the value and not by the byte: half
a million parts of a message made every stream silent for four seconds. Most bodies have too few
commas and brackets to be looked at twice; of the others those inside texts are left out, a slice at
a time, so that a thread that does so holds nobody up. Pure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from penstock.replica.values import Failed
from penstock.replica.vllm.failures import errors

MOST_NESTED: Final = 10_000
"""Objects and lists of one body: some 8 us each."""

MOST_VALUES: Final = 500_000
"""Values of one body, token ids mostly: some 0.3 us each."""

_SLICE: Final = 1 << 16


async def refusal(body: bytes) -> Failed | None:
    """Why a body is not parsed."""
    if _few(*_marks(body)):
        return None
    nested, values = await asyncio.to_thread(counted, body)
    if _few(nested, values):
        return None
    return errors.client_error(
        400,
        "invalid_value",
        f"The body has more than {MOST_NESTED} objects and lists, or more than {MOST_VALUES} "
        "values, the limits; send fewer messages, parts, texts or tokens at once.",
    )


def counted(body: bytes) -> tuple[int, int]:
    """Objects and lists of a body's JSON, and commas between values; at least as many as are too
    many, where they are."""
    nested = values = 0
    for part in _outside_texts(body):
        more, commas = _marks(part)
        nested, values = nested + more, values + commas
        if not _few(nested, values):
            break
    return nested, values


def _few(nested: int, values: int) -> bool:
    return nested <= MOST_NESTED and values <= MOST_VALUES


def _marks(text: bytes) -> tuple[int, int]:
    return text.count(b"{") + text.count(b"["), text.count(b",")


def _outside_texts(body: bytes) -> Iterator[bytes]:
    """What of the body is in no text, a slice after the other."""
    # Pairs of backslashes first: the quote behind one ends its text.
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    inside = 0
    for start in range(0, len(bare), _SLICE):
        parts = bare[start : start + _SLICE].split(b'"')
        yield b"".join(parts[inside::2])
        inside ^= (len(parts) - 1) % 2
