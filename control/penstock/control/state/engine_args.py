"""What Penstock itself knows of engine arguments. Pure.

The engine has the last word on them; what is found here is found when a deployment is asked for,
and not by a replica that does not start.
"""

from __future__ import annotations

import re

from penstock.control.errors import InvalidSpec
from penstock.control.state.deployment import Template

# Each makes the engine run code that comes with a model, or that an operator names.
MODEL_CODE_ARGS = frozenset(
    {
        "trust_remote_code",
        "tool_parser_plugin",
        "reasoning_parser_plugin",
        "io_processor_plugin",
        "logits_processors",
        "model_class_overrides",
        "scheduler_cls",
        "worker_cls",
        "worker_extension_cls",
        "middleware",
    }
)
# These do where their value names a Python module, beside the names that the engine brings.
MODULE_ARGS = frozenset(
    {
        "distributed_executor_backend",
        "compilation_config",
        "kv_transfer_config",
        "ec_transfer_config",
        "ec_manager_config",
        "weight_transfer_config",
        "additional_config",
    }
)
_MODULE = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*|module_path")
_OFF = ("", "false", "0")

SIMULATED_ARGS = (
    "ttft_ms",
    "tokens_per_second",
    "answer_tokens",
    "max_running",
    "die_after_tokens",
    "hang_after_tokens",
    "refuse_share",
    "per_request",
)


def runs_model_code(template: Template) -> bool:
    """Whether the engine arguments run code that does not come with Penstock or the engine."""
    return any(_runs_code(key, value) for key, value in template.engine_args)


def check_engine_args(template: Template) -> None:
    """Raises `InvalidSpec` for what the engine is known to refuse."""
    if template.engine != "simulated":
        return
    for key, value in template.engine_args:
        if key not in SIMULATED_ARGS:
            known = ", ".join(SIMULATED_ARGS)
            raise InvalidSpec(f"the simulated engine has no setting {key!r}: it knows {known}")
        if not _is_number(value):
            raise InvalidSpec(f"engine setting {key} is {value!r}: it must be a number")


def _runs_code(key: str, value: str) -> bool:
    name = key.replace("-", "_").lower().partition(".")[0]
    if name in MODULE_ARGS:
        return _MODULE.search(f"{key}={value}") is not None
    return name in MODEL_CODE_ARGS and value.lower() not in _OFF


def _is_number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False
