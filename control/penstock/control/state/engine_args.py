"""What Penstock itself knows of engine arguments."""

from __future__ import annotations

from penstock.control.state.deployment import Template

# Each makes the engine run code that comes with a model, or that an operator names.
MODEL_CODE_ARGS = frozenset(
    {
        "trust_remote_code",
        "tool_parser_plugin",
        "reasoning_parser_plugin",
        "logits_processors",
        "worker_cls",
        "worker_extension_cls",
        "middleware",
    }
)
_OFF = ("", "false", "0")


def runs_model_code(template: Template) -> bool:
    """Whether the engine arguments run code that does not come with Penstock or the engine."""
    return any(
        key.replace("-", "_") in MODEL_CODE_ARGS and value.lower() not in _OFF
        for key, value in template.engine_args
    )
