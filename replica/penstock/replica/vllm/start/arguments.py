"""Engine settings "key=value" to vLLM's command line.

Keys are vLLM's own flags without dashes in front ("max_model_len"), and some of our own: for CPU
machines `cpu_kvcache_gib` and `cpu_threads`, and `large_body_kib`. What the replica decides itself
is refused, and so is a flag that vLLM does not have: `CannotLoad` names it. Pure: `launch.py`
brings vLLM's options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from penstock.replica.adapters.values import SLOTS_BY_RANK
from penstock.replica.values import CannotLoad

OWNED: Final = frozenset(
    {
        "model",
        "model_tag",
        "served_model_name",
        "host",
        "port",
        "uds",
        "api_key",
        "root_path",
        "middleware",
        "ssl_keyfile",
        "ssl_certfile",
        "ssl_ca_certs",
        "ssl_cert_reqs",
        "ssl_ciphers",
        "enable_ssl_refresh",
        "allow_credentials",
        "allowed_origins",
        "allowed_methods",
        "allowed_headers",
        "config",
        "grpc",
        "grpc_port",
        "headless",
        "api_server_count",
        "lora_modules",
        "enable_log_requests",
        "enable_log_outputs",
        "tool_server",
        "worker_extension_cls",
        "logging_config",
        "log_level",
        "log_config_file",
        "disable_log_stats",
        "disable_uvicorn_access_log",
        "uvicorn_log_level",
        "sse_keep_alive_interval",
        "enable_request_id_headers",
        "data_parallel_size",
        "data_parallel_rank",
        "data_parallel_external_lb",
        "data_parallel_hybrid_lb",
        "kv_transfer_config",
        "scheduler_cls",
    }
)
"""Flags that the replica sets, or that would open vLLM's own server."""

MODEL_CODE: Final = {
    "trust_remote_code": r"(?i)^(true|1|)$",
    "tool_parser_plugin": ".",
    "reasoning_parser_plugin": ".",
    "io_processor_plugin": ".",
    "logits_processors": ".",
    "worker_cls": ".",
    "model_class_overrides": ".",
    "ec_transfer_config": ".",
    "ec_manager_config": ".",
    "compilation_config": ".",
    # JSON can spell every letter by a backslash.
    "speculative_config": r"custom_class|trust_remote_code|\\",
    "structured_outputs_config": r"reasoning_parser_plugin|\\",
    "spec_method": "custom_class",
    "distributed_executor_backend": r"\.",
}
"""Flags by which vLLM runs code from the model's directory or from a module that they name, and for
which values: a pattern that is looked for in the value."""

UNIPROC: Final = "vllm.v1.executor.uniproc_executor.UniProcExecutor"
"""Runs the worker inside the engine's process. By its path, since vLLM's CPU platform turns the
short name "uni" into "mp", which costs a second process and some 5 s of start."""

_LORA_RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)
_LORA_RANK: Final = 16  # where nobody says
_KIB: Final = 1 << 10
_GIB: Final = 1 << 30
_CPU_MODEL_LEN: Final = 8192
_CPU_SHARE_TOKENS: Final = 128
"""Of one prompt in a step beside other requests, or its fair share where that is more: else a long
one that is under way leaves no room in the step to a newcomer."""
_CPU_STEP_TOKENS: Final = 512
"""Of prompts in one step: streams are silent while a step takes, some 50 us a token for a small
model on two cores."""


@dataclass(frozen=True, slots=True)
class Option:
    """One of vLLM's options: its flag, and whether it takes a value, several, or none."""

    flag: str
    kind: Literal["value", "list", "switch", "pair"]  # pair: --x and --no-x


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """The settings that are ours: KV cache of a CPU engine in bytes; its threads, 0: not said; how
    many bytes of a body are read on the loop."""

    kv_cache_bytes: int = _GIB
    threads: int = 0
    large_body_bytes: int = 16 * _KIB
    untested_vllm: bool = False
    transport: str = "tcp"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the defaults depend on. `longest`: tokens that the model's config allows, 0 unknown.

    `writes`: whether it surely writes text, so that a prompt may take several steps. `brought`:
    what a model that comes with Penstock is run with.
    """

    cpu: bool
    adapter_slots: int = 0  # adapters at once; 0: none, unless the settings have enable_lora
    adapter_rank: int = 0  # the largest of theirs; 0: not said
    longest: int = 0
    writes: bool = False
    brought: Mapping[str, str] = field(default_factory=dict)
    sleeps: bool = False  # it is to be put to sleep at times
    microserving: str = ""  # the host at which it takes KV; empty: it moves none
    traces: str = ""  # the URL that its spans go to; empty: it makes none


def own_settings(engine_args: Mapping[str, str]) -> OwnSettings:
    """The settings of our own in `engine_args`. Raises `CannotLoad` for bad values."""
    gib = _number(engine_args, "cpu_kvcache_gib", 1.0)
    return OwnSettings(
        kv_cache_bytes=int(gib * _GIB),
        threads=int(_number(engine_args, "cpu_threads", 0)),
        large_body_bytes=int(_number(engine_args, "large_body_kib", 16) * _KIB),
        untested_vllm=_truth("untested_vllm", engine_args.get("untested_vllm", "false")),
        transport=_transport(engine_args),
    )


def check_early(engine_args: Mapping[str, str], *, allow_model_code: bool) -> None:
    """Refuses what can be refused without vLLM, whose import takes seconds. Raises `CannotLoad`."""
    own_settings(engine_args)
    for key, value in named(engine_args).items():
        _check_owner(key)
        pattern = MODEL_CODE.get(key)
        if pattern and not allow_model_code and re.search(pattern, value):
            raise CannotLoad(
                f"engine setting {key}: it runs code that comes with a model or a file, which this "
                "node does not allow; leave it out, or start the node with --allow-model-code"
            )


def command_line(
    engine_args: Mapping[str, str], options: Mapping[str, Option], circumstances: Circumstances
) -> list[str]:
    """vLLM's command line: the defaults, with what `engine_args` says put over them."""
    own = own_settings(engine_args)
    given = named(engine_args)
    for key in given:
        _check_key(key, options)
    settings = defaults(circumstances, given, own) | given
    return [word for key, value in settings.items() for word in _words(key, value, options[key])]


def defaults(
    circumstances: Circumstances, given: Mapping[str, str], own: OwnSettings
) -> dict[str, str]:
    """What the replica asks of vLLM when the deployment says nothing."""
    chosen = {
        "scheduling_policy": "priority",  # else vLLM ignores a request's priority
        "enable_prompt_tokens_details": "true",
        "disable_log_stats": "true",  # its own log lines; the gauges are still fed
        "use_tqdm_on_load": "false",
        "worker_extension_cls": "penstock.replica.vllm.start.worker.Extension",
        # A replica fetches nothing that a client names; the name stands in what the client is told.
        "allowed_media_domains": "none-unless-allowed_media_domains-is-set.invalid",
    }
    if circumstances.cpu:
        chosen |= _cpu_defaults(circumstances, given, own)
    if circumstances.adapter_slots or given.get("enable_lora") == "true":
        chosen |= _lora_defaults(circumstances)
    if circumstances.sleeps and not circumstances.cpu:
        chosen["enable_sleep_mode"] = "true"
    if circumstances.microserving:
        chosen |= _moving_defaults(circumstances, own)
    if circumstances.traces:
        chosen["otlp_traces_endpoint"] = circumstances.traces
    return chosen | dict(circumstances.brought)


def _cpu_defaults(
    circumstances: Circumstances, given: Mapping[str, str], own: OwnSettings
) -> dict[str, str]:
    chosen = {
        "enforce_eager": "true",
        "max_num_seqs": "256",
        "kv_cache_memory_bytes": str(own.kv_cache_bytes),
    }
    if circumstances.writes and given.get("runner", "auto") != "pooling":
        sequences = given.get("max_num_seqs", "")
        least = int(sequences) if sequences.isdecimal() else 0
        chosen["max_num_batched_tokens"] = str(max(_CPU_STEP_TOKENS, least))
        longest = given.get("max_model_len", str(circumstances.longest))
        if not longest.isdecimal() or not 0 < int(longest) < _CPU_SHARE_TOKENS:
            chosen["long_prefill_token_threshold"] = str(_CPU_SHARE_TOKENS)
            chosen["long_prefill_token_threshold_adaptive"] = "true"
    if circumstances.longest > _CPU_MODEL_LEN:
        chosen["max_model_len"] = str(_CPU_MODEL_LEN)
    if all(given.get(f"{way}_parallel_size", "1") == "1" for way in ("tensor", "pipeline")):
        chosen["distributed_executor_backend"] = UNIPROC
    return chosen


def _moving_defaults(circumstances: Circumstances, own: OwnSettings) -> dict[str, str]:
    """What moves KV, and has its blocks called the same on every machine."""
    told = {
        "host": circumstances.microserving,
        "transport": own.transport,
        # On a device by step: what it has recorded to compute is not interrupted for each layer.
        "by_layer": circumstances.cpu,
    }
    config = {
        "kv_connector": "PenstockConnector",
        "kv_connector_module_path": "penstock.replica.vllm.microserving.connector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": told,
    }
    chosen = {"kv_transfer_config": json.dumps(config), "prefix_caching_hash_algo": "sha256_cbor"}
    return {**chosen, "block_size": "32"} if circumstances.cpu else chosen


def _lora_defaults(circumstances: Circumstances) -> dict[str, str]:
    count = circumstances.adapter_slots or SLOTS_BY_RANK
    # vLLM's CPU kernels give rows without an adapter the last slot's weights, so one stays empty.
    slots = count + 1 if circumstances.cpu else count
    rank = circumstances.adapter_rank or _LORA_RANK
    return {
        "enable_lora": "true",
        "max_loras": str(slots),  # and so many in memory, which vLLM takes from this
        "max_lora_rank": str(next((r for r in _LORA_RANKS if r >= rank), rank)),
    }


def named(engine_args: Mapping[str, str]) -> dict[str, str]:
    """The settings that are vLLM's, by the names that it knows them by."""
    given = {key.replace("-", "_"): value for key, value in engine_args.items()}
    return {key: value for key, value in given.items() if key not in OWN_KEYS}


def _check_owner(key: str) -> None:
    if key in OWNED:
        raise CannotLoad(f"engine setting {key}: the replica sets this itself; leave it out")


def _check_key(key: str, options: Mapping[str, Option]) -> None:
    _check_owner(key)
    if key not in options:
        raise CannotLoad(
            f"engine setting {key}: vLLM has no flag --{key.replace('_', '-')}; "
            "see `vllm serve --help=all` for those it has"
        )


def _words(key: str, value: str, option: Option) -> list[str]:
    if option.kind == "value":
        return [f"{option.flag}={value}"]
    if option.kind == "list":
        words = value.split()
        if any(word.startswith("-") for word in words):
            raise CannotLoad(f"engine setting {key}={value}: no word may begin with a dash")
        return [option.flag, *words]
    wanted = _truth(key, value)
    if option.kind == "pair" and not wanted:
        return ["--no-" + option.flag.removeprefix("--")]
    return [option.flag] if wanted else []


def _truth(key: str, value: str) -> bool:
    known = {"true": True, "1": True, "": True, "false": False, "0": False}
    if value.lower() not in known:
        raise CannotLoad(f"engine setting {key}={value}: say true or false")
    return known[value.lower()]


def _transport(engine_args: Mapping[str, str]) -> str:
    said = engine_args.get("microserving_transport", "tcp")
    if said not in ("tcp", "nixl"):
        raise CannotLoad(f"engine setting microserving_transport={said}: say tcp or nixl")
    return said


def _number(engine_args: Mapping[str, str], key: str, default: float) -> float:
    text = engine_args.get(key, str(default))
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise CannotLoad(f"engine setting {key}={text}: say a number that is not negative")
    return number


OWN_KEYS: Final = frozenset(
    (
        "cpu_kvcache_gib",
        "cpu_threads",
        "large_body_kib",
        "untested_vllm",
        "microserving_transport",
    )
)
"""Settings of our own among vLLM's."""
