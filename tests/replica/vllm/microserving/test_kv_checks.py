"""What is refused as a replica starts, and what two engines must have alike."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.microserving.values import Prompt
from penstock.replica.values import CannotLoad
from penstock.replica.vllm.microserving.checks import check_config, check_kv
from penstock.replica.vllm.microserving.prompts import block_hashes, lease_fingerprint
from penstock.replica.vllm.start.arguments import Circumstances, check_early, defaults, own_settings


def _config(**other: Any) -> Any:
    told = {
        "runner_type": "generate",
        "enable_prefix_caching": True,
        "prefix_caching_hash_algo": "sha256_cbor",
        "cache_dtype": "auto",
        "pipeline_parallel_size": 1,
        "speculative_config": None,
    } | other
    part = SimpleNamespace(**told)
    names = ("model_config", "cache_config", "parallel_config")
    return SimpleNamespace(
        **dict.fromkeys(names, part), speculative_config=told["speculative_config"]
    )


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"runner_type": "pooling"}, "pools"),
        ({"enable_prefix_caching": False}, "prefix caching is off"),
        ({"prefix_caching_hash_algo": "xxhash"}, "sha256_cbor"),
        ({"cache_dtype": "fp8_e5m2"}, "fp8"),
        ({"speculative_config": object()}, "speculative"),
        ({"pipeline_parallel_size": 2}, "pipeline_parallel_size"),
    ],
)
def test_settings_with_which_no_kv_is_moved_are_refused(other: dict[str, Any], told: str) -> None:
    check_config(_config())
    with pytest.raises(CannotLoad, match=told):
        check_config(_config(**other))


class FullAttentionSpec:
    """Named as vLLM's."""

    sliding_window: int | None = None


class SlidingWindowSpec:
    """Likewise."""

    sliding_window = 64


class _Windowed(FullAttentionSpec):
    sliding_window = 64


_Windowed.__name__ = "FullAttentionSpec"


@pytest.mark.parametrize(
    "specs", [[FullAttentionSpec(), SlidingWindowSpec()], [SlidingWindowSpec()], [_Windowed()]]
)
def test_models_whose_layers_forget_are_refused(specs: list[Any]) -> None:
    def kv(specs: list[Any]) -> Any:
        groups = [SimpleNamespace(kv_cache_spec=spec) for spec in specs]
        return SimpleNamespace(kv_cache_groups=groups)

    check_kv(kv([FullAttentionSpec()]))
    with pytest.raises(ValueError, match="sliding window"):
        check_kv(kv(specs))


@pytest.mark.parametrize("key", ["kv_transfer_config", "scheduler_cls", "kv-transfer-config"])
def test_what_moves_kv_is_the_replicas_own_setting(key: str) -> None:
    with pytest.raises(CannotLoad, match="the replica sets this itself"):
        check_early({key: "{}"}, allow_model_code=True)


def test_a_transport_is_one_that_is_known() -> None:
    assert own_settings({}).transport == "tcp"
    with pytest.raises(CannotLoad, match="say tcp or nixl"):
        own_settings({"microserving_transport": "rdma"})


def test_only_engines_that_move_kv_have_a_connector() -> None:
    plain = defaults(Circumstances(cpu=True), {}, own_settings({}))
    assert not {"kv_transfer_config", "prefix_caching_hash_algo", "block_size"} & set(plain)
    moving = defaults(Circumstances(cpu=True, microserving="127.0.0.1"), {}, own_settings({}))
    assert moving["prefix_caching_hash_algo"] == "sha256_cbor"
    assert moving["block_size"] == "32"
    assert '"by_layer": true' in moving["kv_transfer_config"]
    device = defaults(Circumstances(cpu=False, microserving="h"), {}, own_settings({}))
    assert "block_size" not in device
    assert '"by_layer": false' in device["kv_transfer_config"]


_PROMPT = Prompt(tuple(range(100)), "a@1", "d" * 64, "salt")


@pytest.mark.parametrize(
    "other",
    [
        replace(_PROMPT, token_ids=(*range(63), 7, *range(64, 100))),
        replace(_PROMPT, adapter_digest="e" * 64),
        replace(_PROMPT, adapter=""),
        replace(_PROMPT, tenant_salt=""),
    ],
)
def test_a_lease_is_for_one_prompt_of_one_adapter(other: Prompt) -> None:
    mine = lease_fingerprint("engine", _PROMPT, 64)
    assert lease_fingerprint("engine", other, 64) != mine
    assert lease_fingerprint("other", _PROMPT, 64) != mine
    longer = replace(_PROMPT, token_ids=(*range(64), 5))
    assert lease_fingerprint("engine", longer, 64) == mine


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("prompt", [_PROMPT, Prompt(tuple(range(100)))])
def test_block_hashes_are_vllms_own(prompt: Prompt) -> None:
    pytest.importorskip("vllm")
    from vllm.utils.hashing import sha256_cbor
    from vllm.v1.core import kv_cache_utils

    from penstock.replica.vllm.microserving import core, ghosts

    before = kv_cache_utils._gen_lora_extra_hash_keys
    try:
        core.install()
        kv_cache_utils.init_none_hash(sha256_cbor)
        hasher = kv_cache_utils.get_request_block_hasher(32, sha256_cbor)
        lora = f"{prompt.adapter}:{prompt.adapter_digest}" if prompt.adapter else ""
        told = {"tokens": list(prompt.token_ids), "salt": prompt.tenant_salt, "lora": lora}
        engine = SimpleNamespace(request_block_hasher=hasher)
        request = ghosts.request_for(engine, told, 96, "test")
    finally:
        kv_cache_utils._gen_lora_extra_hash_keys = before
    low = [int.from_bytes(one) & ((1 << 64) - 1) for one in request.block_hashes]
    assert list(block_hashes(prompt, 32)) == low
    assert len(low) == 3
