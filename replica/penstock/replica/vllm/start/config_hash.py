"""What decides the tokens and bytes of an answer, as one short hash. Pure, but for files.

Equal hashes mean: an answer that one engine began may be continued by another. So whatever may
change an answer is in it, and what cannot is not: two replicas that differ in how many requests
they run at once, or in where they keep things, go on with each other's answers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

NOT_OF_ANSWERS: Final = frozenset(
    {
        # How many requests there are at once, and in which order they are computed.
        *("max_num_seqs", "max_num_active_seqs", "max_num_queued_reqs", "max_num_queued_tokens"),
        *("max_num_batched_tokens", "max_num_scheduled_tokens", "enable_chunked_prefill"),
        *("long_prefill_token_threshold", "long_prefill_token_threshold_adaptive"),
        *("prefill_schedule_interval", "scheduler_reserve_full_isl"),
        *("scheduling_policy", "async_scheduling", "watermark", "renderer_num_workers"),
        # Where things are kept, and how much of them.
        *("gpu_memory_utilization", "kv_cache_memory_bytes", "cpu_kvcache_gib"),
        *("num_gpu_blocks_override", "kv_offloading_size", "kv_offloading_backend"),
        *("prefix_caching_hash_algo", "prefix_cache_retention_interval"),
        *("max_loras", "max_cpu_loras", "max_lora_rank", "enable_lora"),
        *("cpu_offload_gb", "enable_sleep_mode", "enable_cumem_allocator"),
        *("mm_processor_cache_gb", "mm_processor_cache_type", "mm_shm_cache_max_object_size_mb"),
        "microserving_transport",
        # Which of a machine's equal parts it runs on, and how they reach each other.
        *("cpu_threads", "device_ids", "numa_bind", "numa_bind_cpus", "numa_bind_nodes"),
        *("master_addr", "master_port", "distributed_timeout_seconds"),
        "cpu_distributed_timeout_seconds",
        # How it is loaded and what it tells of itself.
        *("download_dir", "hf_token", "max_parallel_loading_workers", "use_tqdm_on_load"),
        *("safetensors_load_strategy", "safetensors_prefetch_block_size"),
        *("safetensors_prefetch_num_threads", "skip_mm_profiling"),
        *("large_body_kib", "untested_vllm", "shutdown_timeout"),
        *("otlp_traces_endpoint", "collect_detailed_traces", "profiler_config"),
        *("max_log_len", "enable_log_deltas", "log_error_stack", "aggregate_engine_logging"),
        *("enable_logging_iteration_details", "jit_monitor_mode", "jit_monitor_verbose"),
        *("kv_cache_metrics", "kv_cache_metrics_sample", "cudagraph_metrics"),
        *("enable_mfu_metrics", "enable_server_load_tracking"),
        *("show_hidden_metrics_for_version", "custom_histogram_buckets", "kv_events_config"),
    }
)
"""Settings of which an answer's tokens and bytes do not depend, its usage included."""

_FILES: Final = (
    *("chat_template", "tokenizer", "generation_config", "hf_config_path"),
    *("tool_parser_plugin", "reasoning_parser_plugin", "io_processor_plugin"),
)
"""Settings that may name files: these count by what they hold."""

LIBRARIES: Final = ("torch", "triton", "transformers", "tokenizers", "xgrammar", "llguidance")
"""Whose versions decide what comes out, beside vLLM and our own."""

_LENGTH: Final = 16
_BESIDE_WEIGHTS: Final = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
)
_ALSO_BESIDE: Final = (
    *("vocab.json", "merges.txt", "vocab.txt", "added_tokens.json", "tekken.json", "params.json"),
    *("preprocessor_config.json", "processor_config.json", "quantize_config.json"),
    *("hf_quant_config.json", "additional_chat_templates/*.jinja", "*.py"),
)
_OF_KERNELS: Final = frozenset(
    {
        *("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG"),
        *("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "ONEDNN_DEFAULT_FPMATH_MODE"),
        "TORCHDYNAMO_DISABLE",
    }
)
"""What others than vLLM read of the environment to choose their kernels."""

_PLACES: Final = re.compile(
    r"LOG|_ROOT$|_PATH$|_DIR$|_CACHE$|_PORT$|_IP$|HOST|TIMEOUT|STATS|API_KEY|TRACE|DEBUG|MONITOR"
    r"|MEDIA|THREADS|KVCACHE_SPACE|RESERVED_CPU|MULTIPROC|NIXL"
)
"""vLLM's variables that say where things are, how long it waits and what it tells."""

_ISA: Final = re.compile(r"(avx|amx|fma|f16c|asimd|sve|sme|bf16|i8mm|neon)")


def config_hash(parts: Mapping[str, object]) -> str:
    """A hash of named settings, whatever their order."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def of_answers(engine_args: Mapping[str, str]) -> dict[str, str]:
    """Those settings that may change an answer: all but what is known not to. What they say of
    files stands for these."""
    said = {key.replace("-", "_"): value for key, value in engine_args.items()}
    return {
        key: held_by(value) if key in _FILES else value
        for key, value in said.items()
        if key not in NOT_OF_ANSWERS
    }


def of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables that may change an answer: all of vLLM's but what is known not to."""
    return {
        name: value
        for name, value in environment.items()
        if name in _OF_KERNELS or (name.startswith("VLLM_") and not _PLACES.search(name))
    }


def of_device(name: str, cpuinfo: str) -> str:
    """A kind of device: an accelerator's `name`; of a CPU, as Linux describes it, what its kernels
    are chosen by."""
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    words = flags[1].split() if flags else ()
    return " ".join([name, *sorted(word for word in words if _ISA.match(word))])


def held_by(said: str) -> str:
    """What a setting says that may name a file, or a directory of a model's files: their digest;
    or itself."""
    try:
        path = Path(said)
        if path.is_file():
            return hashlib.sha256(path.read_bytes()).hexdigest()
        if said and path.is_dir():
            digest = hashlib.sha256()
            for part in beside_weights(path):
                digest.update(part)
            return digest.hexdigest()
    except (OSError, ValueError):  # a template itself makes no name
        pass
    return said


def beside_weights(directory: Path) -> Iterator[bytes]:
    """What of a model's files decides its answers, beside its weights."""
    for name in _BESIDE_WEIGHTS:
        path = directory / name
        yield f"{name}:{path.exists()}".encode()
        if path.exists():
            yield path.read_bytes()
    for pattern in _ALSO_BESIDE:
        yield from _found(sorted(directory.glob(pattern)))


def _found(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in paths:
        yield path.name.encode()
        yield path.read_bytes()
