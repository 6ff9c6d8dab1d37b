"""What of vLLM is needed to move KV between its engines."""

from __future__ import annotations

from functools import partial
from typing import Final

from penstock.replica.vllm.surface.values import Stage, Touch

_BASE: Final = "vllm.distributed.kv_transfer.kv_connector.v1.base"
_CONNECTOR: Final = f"{_BASE}:KVConnectorBase_V1"
_MANAGER: Final = "vllm.v1.core.kv_cache_manager:KVCacheManager"
_SCHEDULER: Final = "vllm.v1.core.sched.scheduler:Scheduler"
_moving: Final = partial(Touch, Stage.ENGINE)

OF_MOVING: Final = (
    _moving(
        (
            f"{_CONNECTOR}.requires_piecewise_for_cudagraph(extra_config)",
            f"{_CONNECTOR}.handle_preemptions(kv_connector_metadata)",
            f"{_CONNECTOR}.save_kv_layer(layer_name, kv_layer, attn_metadata)",
            f"{_CONNECTOR}.get_finished(finished_req_ids)",
            f"{_CONNECTOR}.set_xfer_handshake_metadata(metadata)",
            f"{_CONNECTOR}.get_num_new_matched_tokens(request, num_computed_tokens)",
            f"{_CONNECTOR}.update_state_after_alloc(request, blocks, num_external_tokens)",
            f"{_CONNECTOR}.build_connector_meta(scheduler_output)",
            f"{_CONNECTOR}.request_finished(request, block_ids)",
            f"{_CONNECTOR}.on_new_request(request)",
            f"{_CONNECTOR}{{requires_kv_delivery, role, register_kv_caches, start_load_kv, "
            "wait_for_layer_load, wait_for_save, get_handshake_metadata, reset_cache, shutdown, "
            "_connector_metadata, _kv_cache_manager}",
            f"{_BASE}:KVConnectorHandshakeMetadata",
            f"{_BASE}:KVConnectorMetadata",
            f"{_BASE}:KVConnectorRole.SCHEDULER",
            "vllm.config.kv_transfer:KVTransferConfig{kv_connector, kv_connector_module_path, "
            "kv_role, kv_load_failure_policy, kv_connector_extra_config}",
        ),
        ("microserving/connector.py",),
        "our connector: what is computed is sent with the step, and blocks that are sent stay; "
        "where one of these raises, the engine ends",
        "never; it is how vLLM has KV moved, and it calls that experimental",
    ),
    _moving(
        (
            "vllm.v1.core.sched.output:SchedulerOutput{scheduled_new_reqs, scheduled_cached_reqs, "
            "num_scheduled_tokens, preempted_req_ids}",
            "vllm.v1.core.sched.output:NewRequestData{req_id, num_computed_tokens}",
            "vllm.v1.core.sched.output:CachedRequestData{req_ids, num_computed_tokens}",
            "vllm.v1.request:Request{request_id, kv_transfer_params}",
        ),
        ("microserving/tracks.py",),
        "which blocks of a request a step completes",
        "vLLM tells connectors of whole blocks",
    ),
    _moving(
        (
            f"{_MANAGER}.get_computed_blocks(request)",
            f"{_MANAGER}.allocate_slots(request, num_new_tokens, num_new_computed_tokens, "
            "new_computed_blocks, *, num_external_computed_tokens, delay_cache_blocks, "
            "reserved_blocks, has_scheduled_reqs, skip_zeroing_group_ids)",
            f"{_MANAGER}.get_block_ids(request_id)",
            f"{_MANAGER}.cache_blocks(request, num_computed_tokens)",
            f"{_MANAGER}.free(request)",
            f"{_MANAGER}{{block_pool}}",
            f"{_SCHEDULER}._inflight_prefill_reserved_blocks()",
            f"{_SCHEDULER}.make_stats()",
            "vllm.v1.engine:EngineCoreOutputs(*, scheduler_stats)",
            "vllm.v1.engine.core:EngineCoreProc{output_queue}",
            f"{_SCHEDULER}{{kv_cache_manager, kv_cache_config, block_size, running, connector}}",
            "vllm.v1.core.block_pool:BlockPool.get_num_free_blocks()",
            "vllm.v1.engine.core:EngineCore{scheduler, request_block_hasher}",
            "vllm.v1.request:Request(request_id, prompt_token_ids, sampling_params, "
            "pooling_params, *, lora_request, cache_salt, block_hasher)",
            "vllm.lora.request:LoRARequest(lora_name, lora_int_id, lora_path)",
            "vllm.sampling_params:SamplingParams",
        ),
        ("microserving/ghosts.py", "microserving/scheduling.py"),
        "blocks are leased by a request that is never queued, between two steps",
        "vLLM lends blocks of its pool",
    ),
    _moving(
        (
            "vllm.v1.core.kv_cache_utils:resolve_none_hash_seed(hash_fn)",
            "vllm.v1.core.kv_cache_utils:_gen_lora_extra_hash_keys(request)",
            "vllm.v1.core:kv_cache_utils",
            "vllm.utils.hashing:sha256_cbor(input)",
        ),
        ("microserving/core.py", "microserving/prompts.py"),
        "hashes of blocks are told to routers, and have to be the same on every machine: an "
        "adapter counts by its name, which has its digest, and not by its directory",
        "vLLM tells hashes, and leaves directories out of them",
    ),
    _moving(
        (
            "vllm.v1.engine:EngineCoreRequestType.WAKEUP",
            "vllm.v1.engine.core:EngineCoreProc._handle_client_request(request_type, request)",
            "vllm.v1.engine.core:EngineCoreProc{input_queue}",
            "vllm.v1.engine.core_client:AsyncMPClient.call_utility_async(method)",
        ),
        ("microserving/core.py", "microserving/service.py"),
        "leases are asked for and ended on the engine's thread between two steps; who has to wait "
        "is answered later, by a future",
        "vLLM has utilities of others",
    ),
    _moving(
        (
            "vllm.sampling_params:SamplingParams{max_tokens, temperature, detokenize, extra_args}",
            "vllm.config.model:ModelConfig{max_model_len, get_vocab_size}",
        ),
        ("microserving/service.py", "serving/client.py"),
        "what is sent is a request of one token, beside which the connector is told where to",
        "vLLM calls it stable",
    ),
    _moving(
        (
            "vllm.config.cache:CacheConfig{enable_prefix_caching, prefix_caching_hash_algo, "
            "cache_dtype}",
            "vllm.config.parallel:ParallelConfig{pipeline_parallel_size, tensor_parallel_size, "
            "rank}",
            "vllm.config.vllm:VllmConfig{speculative_config, kv_transfer_config}",
            "vllm.v1.kv_cache_interface:KVCacheConfig{kv_cache_groups, num_blocks}",
            "vllm.v1.kv_cache_interface:KVCacheGroupSpec{kv_cache_spec}",
            "vllm.v1.kv_cache_interface:FullAttentionSpec{sliding_window}",
            "vllm.v1.kv_cache_interface:MLAAttentionSpec",
        ),
        ("microserving/checks.py", "microserving/kv_calls.py", "microserving/connector.py"),
        "what cannot be moved is refused as the replica starts",
        "vLLM says of a config whether its KV can be moved by blocks",
    ),
)
