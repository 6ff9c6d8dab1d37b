"""How many bytes a model's weights are, in its files and once loaded. Reads headers alone."""

from __future__ import annotations

import math
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.adapters.safetensors import (
    PREFIX_BYTES,
    BadSafetensors,
    Tensor,
    header_length,
    read_header,
)

_AGAIN: Final = "consolidated"
_FLOATING: Final = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True, slots=True)
class Weights:
    """Of one model: bytes as they are stored, and of these the numbers that take the width that
    the engine runs with."""

    stored: int = 0
    floating_bytes: int = 0
    floating: int = 0  # numbers

    def loaded(self, number: int) -> int:
        """Bytes in an engine that runs with numbers of so many bytes."""
        return self.stored - self.floating_bytes + self.floating * number

    def __add__(self, other: Weights) -> Weights:
        return Weights(
            self.stored + other.stored,
            self.floating_bytes + other.floating_bytes,
            self.floating + other.floating,
        )


def loaded(files: Sequence[Path]) -> list[Path]:
    """Those that an engine loads, of a model's files: some models bring their weights once more, in
    one file of another format."""
    again = [path for path in files if path.name.startswith(_AGAIN)]
    return [path for path in files if path not in again] or again


def weights_in(files: Iterable[Path]) -> Weights:
    """Of all files. One whose header cannot be read counts with its size. Raises `OSError`."""
    found = Weights()
    for path in files:
        found += _weights_of(path)
    return found


def _weights_of(path: Path) -> Weights:
    about = path.stat()
    size = about.st_size
    if path.suffix != ".safetensors" or not stat.S_ISREG(about.st_mode):
        return Weights(size)
    with path.open("rb") as file:
        try:
            length = header_length(file.read(PREFIX_BYTES))
            tensors = read_header(file.read(length), size - PREFIX_BYTES - length)
        except BadSafetensors:  # a type that is newer than the reader, or no such file at all
            return Weights(size)
    return _sum(tensors)


def _sum(tensors: Iterable[Tensor]) -> Weights:
    stored = floating_bytes = floating = 0
    for tensor in tensors:
        stored += tensor.end - tensor.begin
        if tensor.dtype in _FLOATING:
            floating_bytes += tensor.end - tensor.begin
            floating += math.prod(tensor.shape)
    return Weights(stored, floating_bytes, floating)
