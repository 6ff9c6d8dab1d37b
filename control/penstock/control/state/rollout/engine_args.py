"""What Penstock itself knows of engine arguments. Pure.

The engine has the last word on them; what is found here is found when a deployment is asked for,
and not by a replica that does not start.
"""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

from penstock.control.errors import InvalidSpec
from penstock.control.state.providers.settings import check_provider
from penstock.control.state.rollout import vllm_settings
from penstock.control.state.rollout.template import Template

# Each makes the engine run code that comes with a model, or that an operator names, where its value
# has this pattern. Never less than the replica's own list: what it refuses is to be placed where it
# is allowed.
_ANY = re.compile("")
_ON = re.compile(r"(?i)^(?!(false|0)$)")  # an empty value switches on, too
# JSON can spell every letter by a backslash.
_MODULE = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*|module_path|\\")
MODEL_CODE_ARGS = {
    "trust_remote_code": _ON,
    "tool_parser_plugin": _ANY,
    "reasoning_parser_plugin": _ANY,
    "io_processor_plugin": _ANY,
    "logits_processors": _ANY,
    "model_class_overrides": _ANY,
    "scheduler_cls": _ANY,
    "worker_cls": _ANY,
    "worker_extension_cls": _ANY,
    "middleware": _ANY,
    "kv_transfer_config": _ANY,
    "ec_transfer_config": _ANY,
    "ec_manager_config": _ANY,
    "compilation_config": _ANY,
    "speculative_config": re.compile(r"custom_class|trust_remote_code|\\"),
    "structured_outputs_config": re.compile(r"reasoning_parser_plugin|\\"),
    "spec_method": re.compile("custom_class"),
    "distributed_executor_backend": re.compile(r"\."),
    "weight_transfer_config": _MODULE,
    "additional_config": _MODULE,
}


class Contradiction(NamedTuple):
    """Values of an argument that cannot be where something else is on."""

    value: re.Pattern[str]
    cause: str


_SPECULATES = Contradiction(_ANY, "speculative decoding keeps KV of its own")
KEEPS_KV = {
    "enable_prefix_caching": Contradiction(
        re.compile(r"(?i)^(false|0)$"), "KV that is moved is found by the prefix cache"
    ),
    "kv_offloading_size": Contradiction(_ANY, "it brings a KV connector of its own"),
    "kv_cache_dtype": Contradiction(
        re.compile(r"(?i)^fp8"), "the scales of fp8 differ from engine to engine"
    ),
    "prefix_caching_hash_algo": Contradiction(
        re.compile(r"^(?!sha256_cbor$)"), "engines have to hash alike, by sha256_cbor"
    ),
    "pipeline_parallel_size": Contradiction(
        re.compile(r"^(?!1$)"), "KV is moved by engines of one stage"
    ),
    "runner": Contradiction(re.compile("^pooling$"), "a model that pools keeps no KV"),
    **dict.fromkeys(
        ("speculative_config", "spec_method", "spec_model", "spec_tokens"), _SPECULATES
    ),
}
"""What MicroServing cannot be beside, as far as an argument tells it."""

SIMULATED_ARGS = (
    "ttft_ms",
    "tokens_per_second",
    "answer_tokens",
    "max_running",
    "die_after_tokens",
    "hang_after_tokens",
    "refuse_share",
    "per_request",
    "kv_blocks",
    "prefill_tokens_per_second",
    "kv_bytes_per_token",
    "kv_bytes_per_second",
    "kv_transfer_ms",
    "adapter_load_ms",
    "fail_adapter_loads",
    "wakes_wrong",
    "no_resume",
)
SIMULATED_TEXTS = ("fail_adapter_loads", "wakes_wrong", "no_resume")
"""Of these, what may be other than a number."""


def runs_model_code(template: Template) -> bool:
    """Whether the engine arguments run code that does not come with Penstock or the engine."""
    return any(_runs_code(key, value) for key, value in template.engine_args)


def check_engine_args(template: Template) -> None:
    """Raises `InvalidSpec` for what the engine is known to refuse."""
    if template.engine == "vllm":
        _check_vllm(template)
        _check_moves_kv(template)
    if template.engine == "simulated":
        _check_simulated(template)
    if template.is_managed:
        check_provider(template.engine, template.engine_args)


def _check_vllm(template: Template) -> None:
    """By name alone. Of a vLLM that nobody has looked at, which a setting allows, none is known."""
    given = {key.replace("-", "_"): value for key, value in template.engine_args}
    if given.get("untested_vllm", "false").lower() not in ("false", "0"):
        return
    for key in given:
        if key in vllm_settings.OWNED:
            raise InvalidSpec(f"engine setting {key}: the replica sets this itself; leave it out")
        if key not in vllm_settings.KNOWN:
            raise InvalidSpec(f"vLLM has no engine setting {key!r}{_nearest(key)}")


def _check_moves_kv(template: Template) -> None:
    """That nothing speaks against MicroServing, where it is on."""
    for key, value in template.engine_args if template.microserving else ():
        why = KEEPS_KV.get(key.replace("-", "_").lower().partition(".")[0])
        if why is not None and why.value.search(value):
            raise InvalidSpec(
                f"engine setting {key} is {value!r}, and microserving is on: {why.cause}"
            )


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key.lower(), vllm_settings.KNOWN)
    return f"; near to it: {', '.join(near)}" if near else "; see `vllm serve --help=all`"


def _check_simulated(template: Template) -> None:
    for key, value in template.engine_args:
        if key not in SIMULATED_ARGS:
            known = ", ".join(SIMULATED_ARGS)
            raise InvalidSpec(f"the simulated engine has no setting {key!r}: it knows {known}")
        if key not in SIMULATED_TEXTS and not _is_number(value):
            raise InvalidSpec(f"engine setting {key} is {value!r}: it must be a number")


def _runs_code(key: str, value: str) -> bool:
    name, _, inner = key.replace("-", "_").lower().partition(".")
    pattern = MODEL_CODE_ARGS.get(name)
    return (
        pattern is not None and pattern.search(f"{inner}={value}" if inner else value) is not None
    )


def _is_number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False
