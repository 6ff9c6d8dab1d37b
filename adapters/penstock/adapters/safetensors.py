"""What a safetensors file says of its tensors, read from its header alone.

The format (https://huggingface.co/docs/safetensors, "Format"): eight bytes with the length of the
header, little-endian; the header, JSON that maps names to dtype, shape and offsets; then the bytes
of the tensors, which the offsets cover from first to last without a hole. Nothing of it is code,
which is why an adapter's weights may come in no other format.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from penstock.adapters.shown import shown

PREFIX_BYTES: Final = 8
LARGEST_HEADER: Final = 2 << 20
"""Bytes. A thousand tensors take a tenth of a mebibyte."""

_MOST_DIMENSIONS: Final = 8
_LARGEST_NUMBER: Final = 2**63 - 1
_LONGEST_NAME: Final = 1024
_BYTES_OF: Final = {
    **dict.fromkeys(("F64", "I64", "U64"), 8),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL"), 1),
}


class BadSafetensors(ValueError):
    """Bytes that are no safetensors file; the message says why, and at which tensor."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a file: its bytes lie from `begin` to `end` behind the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def header_length(prefix: bytes) -> int:
    """Bytes of the header, from the first eight of the file. Raises `BadSafetensors`."""
    if len(prefix) != PREFIX_BYTES:
        raise BadSafetensors(f"it has {len(prefix)} bytes, a safetensors file has more")
    length: int = struct.unpack("<Q", prefix)[0]
    if not 2 <= length <= LARGEST_HEADER:
        raise BadSafetensors(
            f"its header would have {length} bytes, between 2 and {LARGEST_HEADER} are possible"
        )
    return length


def read_header(header: bytes, data_bytes: int) -> tuple[Tensor, ...]:
    """The tensors of a file by their place in it, whose data has so many bytes behind the header.

    Raises `BadSafetensors` where header and data do not fit: what is named does not lie there, or
    bytes lie there that nobody names.
    """
    named = (_tensor(name, about) for name, about in _parsed(header).items())
    tensors = sorted(named, key=lambda tensor: (tensor.begin, tensor.end))
    reached = 0
    for tensor in tensors:
        if tensor.begin != reached:
            raise BadSafetensors(
                f"tensor {tensor.name} begins at {tensor.begin}, the one before ends at {reached}"
            )
        reached = tensor.end
    if reached != data_bytes:
        raise BadSafetensors(
            f"its tensors take {reached} bytes and {data_bytes} are there: it is cut off or padded"
        )
    return tuple(tensors)


def _parsed(header: bytes) -> dict[str, Any]:
    try:
        text = header.decode()
        parsed = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadSafetensors(f"its header is no JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise BadSafetensors("its header is no JSON object")
    _check_metadata(parsed.pop("__metadata__", None))
    return parsed


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _check_metadata(metadata: Any) -> None:
    told = metadata.values() if isinstance(metadata, dict) else [metadata]
    if metadata is not None and not all(isinstance(value, str) for value in told):
        raise BadSafetensors("its __metadata__ is no map of texts")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadSafetensors("its header names a tensor twice")
    return found


def _tensor(name: str, about: Any) -> Tensor:
    if not name.isprintable() or len(name) > _LONGEST_NAME:
        raise BadSafetensors(f"tensor {shown(name)} has a name that is no short printable text")
    match about:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [begin, end]}:
            pass
        case _:
            raise BadSafetensors(f"tensor {name} has no dtype, shape and data_offsets")
    if dtype not in _BYTES_OF:
        known = ", ".join(_BYTES_OF)
        raise BadSafetensors(f"tensor {name} is of type {shown(dtype)}, known are {known}")
    if len(shape) > _MOST_DIMENSIONS or not all(map(_is_number, shape)):
        raise BadSafetensors(f"tensor {name} has the shape {shown(shape)}")
    size = math.prod(shape) * _BYTES_OF[dtype]
    if not _is_number(begin) or not _is_number(end) or end - begin != size:
        raise BadSafetensors(
            f"tensor {name} lies from {shown(begin)} to {shown(end)}, {dtype} of shape {shape} "
            f"takes {size} bytes"
        )
    return Tensor(name, dtype, tuple(shape), begin, end)


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_NUMBER
