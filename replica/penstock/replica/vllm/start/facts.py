"""What distinguishes this engine's answers from those of another: two short hashes.

`model_version` is of the weights and what belongs to them; `config_hash` of everything that decides
the tokens of an answer, so that equal hashes mean: a stream begun by one engine may be continued by
the other. Large weights are hashed by name, size and samples, for reading them whole takes minutes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.replica.values import EngineFacts
from penstock.replica.vllm.start.checks import ModelPlace, weight_files

if TYPE_CHECKING:
    from penstock.replica.vllm.start.launch import Launched

NOT_OF_ANSWERS: Final = frozenset(
    {
        # How many requests there are at once, and in which order they are computed.
        "max_num_seqs",
        "max_num_batched_tokens",
        "long_prefill_token_threshold",
        "long_prefill_token_threshold_adaptive",
        "max_num_partial_prefills",
        "max_long_partial_prefills",
        "scheduling_policy",
        "async_scheduling",
        "watermark",
        # Where things are kept, and how much of them.
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "cpu_kvcache_gib",
        "num_gpu_blocks_override",
        "block_size",
        "enable_prefix_caching",
        "prefix_caching_hash_algo",
        "max_loras",
        "max_cpu_loras",
        "max_lora_rank",
        "enable_lora",
        "cpu_offload_gb",
        "enable_sleep_mode",
        "mm_processor_cache_gb",
        "microserving_transport",
        # How it is loaded and what it tells of itself.
        "download_dir",
        "max_parallel_loading_workers",
        "safetensors_load_strategy",
        "cpu_threads",
        "large_body_kib",
        "untested_vllm",
        "otlp_traces_endpoint",
        "collect_detailed_traces",
        "max_log_len",
        "shutdown_timeout",
    }
)
"""Settings of which an answer's tokens and bytes do not depend."""

_SAMPLE: Final = 1 << 20
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


def model_version(directory: Path) -> str:
    """A hash of the weights, the tokenizer and the template in `directory`."""
    digest = hashlib.sha256()
    for name in _BESIDE_WEIGHTS:
        path = directory / name
        digest.update(f"{name}:{path.exists()}".encode())
        if path.exists():
            digest.update(path.read_bytes())
    for path in weight_files(directory):
        digest.update(f"{path.name}:{path.stat().st_size}".encode())
        for part in _samples(path):
            digest.update(part)
    return digest.hexdigest()[:_LENGTH]


def of_engine(
    place: ModelPlace,
    launched: Launched,
    engine_args: Mapping[str, str],
    endpoints: tuple[str, ...],
) -> EngineFacts:
    """Of an engine that is up. Imports vLLM."""
    from vllm import __version__

    model = launched.llm.vllm_config.model_config
    commit = getattr(model.hf_config, "_commit_hash", None)
    version = model_version(place.directory) if place.directory else str(commit)
    settings = {
        "penstock": metadata.version("penstock"),
        "vllm": __version__,
        "model": version,
        "dtype": model.dtype,
        "max_model_len": model.max_model_len,
        "engine_args": of_answers(engine_args),
        "chat_template": launched.args.chat_template,
    }
    return EngineFacts(
        backend="vllm",
        backend_version=__version__,
        model_version=version,
        max_model_len=model.max_model_len,
        max_running=launched.llm.vllm_config.scheduler_config.max_num_seqs,
        config_hash=config_hash(settings),
        endpoints=endpoints,
        model=place.name,
    )


def of_answers(engine_args: Mapping[str, str]) -> dict[str, str]:
    """Those settings that may change an answer: all but what is known not to."""
    said = {key.replace("-", "_"): value for key, value in engine_args.items()}
    return {key: value for key, value in said.items() if key not in NOT_OF_ANSWERS}


def config_hash(parts: Mapping[str, object]) -> str:
    """A hash of named settings, whatever their order."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def _samples(path: Path) -> Iterable[bytes]:
    """The first and the last MiB and 14 between; a file of up to 16 MiB whole."""
    size = path.stat().st_size
    step = max(_SAMPLE, (size - _SAMPLE) // 15)
    with path.open("rb") as file:
        for position in range(0, size, step):
            file.seek(position)
            yield file.read(_SAMPLE)
        file.seek(max(0, size - _SAMPLE))
        yield file.read()
