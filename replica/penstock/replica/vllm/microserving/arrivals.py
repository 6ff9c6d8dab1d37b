"""Which blocks of a lease have arrived whole: in every layer. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.replica.vllm.microserving.frames import BadFrame, Blocks


class Arrivals:
    """Of a lease of so many blocks, in so many layers."""

    def __init__(self, layers: int, blocks: int) -> None:
        self._layers = layers
        self._blocks = blocks
        self._seen = bytearray(layers * blocks)
        self._missing = [layers] * blocks  # layers, by block

    def check(self, frame: Blocks) -> None:
        """Raises `BadFrame` for layers and places that the lease does not have."""
        if frame.layer >= self._layers or max(frame.places) >= self._blocks:
            raise BadFrame("blocks that are not leased")

    def add(self, frame: Blocks) -> int:
        """These have arrived; returns how many of them for the first time."""
        new = 0
        for place in frame.places:
            at = frame.layer * self._blocks + place
            if not self._seen[at]:
                self._seen[at] = 1
                self._missing[place] -= 1
                new += 1
        return new

    def prefix(self) -> int:
        """So many blocks from the first on are here whole."""
        return next((at for at, left in enumerate(self._missing) if left), self._blocks)


def runs(*sides: Sequence[int]) -> list[tuple[int, ...]]:
    """Neighbours together: where each run begins on each side, and how long it is."""
    made: list[tuple[int, ...]] = []
    for places in zip(*sides, strict=True):
        if made:
            *begins, count = made[-1]
            if all(at == begin + count for at, begin in zip(places, begins, strict=True)):
                made[-1] = (*begins, count + 1)
                continue
        made.append((*places, 1))
    return made
