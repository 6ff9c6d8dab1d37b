"""What KV can be moved between engines, and what is refused as a replica starts, with the cause.

Knows vLLM's configs by their attributes alone.
"""

from __future__ import annotations

from typing import Any

from penstock.replica.values import CannotLoad

HASHES = "sha256_cbor"
"""How blocks are hashed: the same on every machine and in every process."""


def check_config(config: Any) -> None:
    """Refuses settings with which no KV is moved. Raises `CannotLoad`."""
    cache, parallel = config.cache_config, config.parallel_config
    reasons = (
        (config.model_config.runner_type == "pooling", "the model pools, and keeps no KV"),
        (not cache.enable_prefix_caching, "prefix caching is off (enable_prefix_caching)"),
        (
            cache.prefix_caching_hash_algo != HASHES,
            f"prefix_caching_hash_algo has to be {HASHES}",
        ),
        (str(cache.cache_dtype).startswith("fp8"), "KV in fp8 has scales that are not moved"),
        (config.speculative_config is not None, "speculative decoding keeps KV of its own"),
        (parallel.pipeline_parallel_size > 1, "pipeline_parallel_size is above 1"),
    )
    for holds, why in reasons:
        if holds:
            raise CannotLoad(f"microserving: {why}; change that, or turn microserving off")


def check_kv(kv: Any) -> None:
    """Refuses a model whose layers do not all keep the KV of all tokens. Raises `ValueError`, in
    the engine's process."""
    groups = kv.kv_cache_groups
    kinds = {type(group.kv_cache_spec).__name__ for group in groups}
    windows = [getattr(group.kv_cache_spec, "sliding_window", None) for group in groups]
    if len(groups) != 1 or not kinds <= {"FullAttentionSpec", "MLAAttentionSpec"} or any(windows):
        raise ValueError(
            "microserving: the model's layers keep KV in several ways, or of a sliding window "
            f"({', '.join(sorted(kinds))}), which is not moved; turn microserving off"
        )
