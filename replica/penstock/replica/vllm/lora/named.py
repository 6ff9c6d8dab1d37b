"""The adapters that an engine begins with, looked at before vLLM starts, which takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from penstock.adapters.fitness import FamilyLimits
from penstock.replica.adapters.values import AdapterUnavailable, Code, Prepared
from penstock.replica.values import AdapterSource, EngineError
from penstock.replica.vllm.lora.adapter_files import shapes_of
from penstock.replica.vllm.lora.adapters import VllmWeights
from penstock.replica.vllm.start.checks import ModelPlace


async def look_at_named(
    named: Sequence[AdapterSource], weights: VllmWeights, place: ModelPlace, max_rank: int
) -> tuple[dict[AdapterSource, AdapterUnavailable], int]:
    """Those that are not there, and the widest rank of the others. Raises `CannotLoad` for one that
    was given as a directory and is wrong."""
    shapes = await asyncio.to_thread(shapes_of, place)
    weights.limits = FamilyLimits(max_rank=max_rank, shapes=shapes)
    looks = [weights.prepare(adapter) for adapter in named]
    missing: dict[AdapterSource, AdapterUnavailable] = {}
    widest = 0
    for adapter, found in zip(
        named, await asyncio.gather(*looks, return_exceptions=True), strict=True
    ):
        if isinstance(found, Prepared):
            widest = max(widest, found.rank)
        elif not isinstance(found, EngineError) or (adapter.source and not adapter.digest):
            raise found
        else:
            missing[adapter] = AdapterUnavailable(Code.LOAD_FAILED, str(found))
    return missing, widest
