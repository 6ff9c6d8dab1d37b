"""An engine's KV as bytes: blocks of a layer, to be sent from and written into.

On a CPU the bytes are vLLM's own, one run per layer and block; their order within a block is that
of this CPU's kernels, so only whole blocks move, between engines of one layout. On a device they go
by way of this machine's memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.replica.vllm.microserving.arrivals import runs


class KvMemory:
    """The KV of one worker. `layers`: vLLM's tensors of them, in the model's order."""

    def __init__(self, layers: Mapping[str, Any], blocks: int) -> None:
        """Raises `ValueError` for a layout whose blocks are not each in one piece."""
        import torch

        first = next(iter(layers.values()))
        for name, tensor in layers.items():
            if tensor.shape[0] != blocks or not tensor[0].is_contiguous():
                shape = (tuple(tensor.shape), tensor.stride())
                raise ValueError(f"the KV of {name} is not kept block by block: {shape}")
            if tensor.stride(0) != tensor[0].numel():
                raise ValueError(f"the KV of {name} has gaps between its blocks")
        self._rows = [one.reshape(blocks, -1).view(torch.uint8) for one in layers.values()]
        self.layers = {name: at for at, name in enumerate(layers)}
        self.blocks = blocks
        sizes = {rows.shape[1] for rows in self._rows}
        if len(sizes) != 1:
            raise ValueError(f"its layers keep blocks of {len(sizes)} sizes")
        self.block_bytes = sizes.pop()
        self.device = first.device.type
        layout = [sorted(layers), list(first.shape[1:]), list(first.stride()), str(first.dtype)]
        self.layout = hashlib.sha256(json.dumps([layout, self.device]).encode()).hexdigest()
        self._views = [rows.numpy() for rows in self._rows] if self.device == "cpu" else []

    def bases(self) -> list[int]:
        """Where each layer begins, as an address."""
        return [rows.data_ptr() for rows in self._rows]

    def outgoing(self, layer: int, blocks: Sequence[int]) -> list[memoryview]:
        """The bytes of these blocks."""
        if self._views:
            return self._parts(layer, blocks)
        import torch

        where = torch.tensor(blocks, device=self._rows[layer].device)
        return [memoryview(self._rows[layer].index_select(0, where).cpu().numpy()).cast("B")]

    def incoming(
        self, layer: int, blocks: Sequence[int]
    ) -> tuple[list[memoryview], Callable[[], None]]:
        """Where their bytes are to be put, and what is to be called once they are there."""
        if self._views:
            return self._parts(layer, blocks), _nothing
        import torch

        rows = self._rows[layer]
        host = torch.empty((len(blocks), self.block_bytes), dtype=torch.uint8)

        def put() -> None:
            rows.index_copy_(0, torch.tensor(blocks, device=rows.device), host.to(rows.device))
            if self.device == "cuda":
                torch.cuda.synchronize(rows.device)

        return [memoryview(host.numpy()).cast("B")], put

    def _parts(self, layer: int, blocks: Sequence[int]) -> list[memoryview]:
        rows = self._views[layer]
        return [memoryview(rows[at : at + count]).cast("B") for at, count in runs(blocks)]


def _nothing() -> None:
    pass
