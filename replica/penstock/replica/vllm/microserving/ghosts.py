"""Blocks pinned for KV that comes, by vLLM's own means: a request that is never queued.

Its blocks are found and allocated by the scheduler's KV cache manager between two steps, as those
of any request. Imports vLLM: only in the engine's process.
"""

from __future__ import annotations

from typing import Any

from vllm.lora.request import LoRARequest
from vllm.sampling_params import SamplingParams
from vllm.v1.engine import EngineCoreOutputs
from vllm.v1.request import Request


def request_for(core: Any, prompt: dict[str, Any], tokens: int, name: str) -> Any:
    """A request of vLLM's for the first tokens of a prompt, that finds all of their blocks: the
    last token of a request never comes from the cache, so one is added."""
    lora = prompt.get("lora")
    return Request(
        request_id=name,
        prompt_token_ids=[*prompt["tokens"][:tokens], 0],
        sampling_params=SamplingParams(max_tokens=1),
        pooling_params=None,
        lora_request=LoRARequest(lora, 1, lora) if lora else None,
        cache_salt=prompt.get("salt") or None,
        block_hasher=core.request_block_hasher,
    )


def found(core: Any, request: Any) -> tuple[Any, int]:
    """Blocks of it that are here, and their tokens."""
    blocks, tokens, _ = core.scheduler.kv_cache_manager.get_computed_blocks(request)
    return blocks, tokens


def allocated(core: Any, request: Any, here: Any, matched: int, end: int) -> list[int] | None:
    """Pins the blocks of `end` tokens; the ids of those that are not `here`. None: there are not
    enough that are free and not spoken for."""
    scheduler = core.scheduler
    manager = scheduler.kv_cache_manager
    if not end:
        return []
    groups = tuple(range(len(scheduler.kv_cache_config.kv_cache_groups)))
    made = manager.allocate_slots(
        request,
        0,
        num_new_computed_tokens=matched,
        new_computed_blocks=here,
        num_external_computed_tokens=end - matched,
        delay_cache_blocks=True,
        reserved_blocks=scheduler._inflight_prefill_reserved_blocks(),
        has_scheduled_reqs=bool(scheduler.running),
        skip_zeroing_group_ids=groups,  # a later step would wipe what has come
    )
    if made is None:
        return None
    ids: list[int] = manager.get_block_ids(request.request_id)[0]
    size = scheduler.block_size
    return ids[matched // size : end // size]


def cached(core: Any, request: Any, tokens: int) -> None:
    """So many tokens' KV is in its blocks: others find it."""
    core.scheduler.kv_cache_manager.cache_blocks(request, tokens)


def freed(core: Any, request: Any, end: int) -> None:
    """Gives the blocks back. Those that nobody can find are the first to be used again."""
    if end:
        core.scheduler.kv_cache_manager.free(request)


def told(core: Any) -> None:
    """Tells of the blocks that are in use, as a step does: leases begin and end without one. It
    goes the way of what steps tell, so that the last word is the newest."""
    if (stats := core.scheduler.make_stats()) is not None:
        core.output_queue.put_nowait((0, EngineCoreOutputs(scheduler_stats=stats)))
