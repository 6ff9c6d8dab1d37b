"""An `adapter_config.json`, as far as it decides whether and how an adapter can be served.

PEFT writes it (https://huggingface.co/docs/peft, "LoraConfig"). What changes an adapter's meaning
and no engine here computes is refused by name, so that nobody gets answers from half an adapter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

LARGEST_RANK: Final = 512

# Fields of PEFT's LoraConfig that have to be empty, and what they would make of the adapter.
_NOT_SERVED: Final = {
    "modules_to_save": "whole layers of its own",
    "use_dora": "weight-decomposed (DoRA)",
    "lora_bias": "biases",
    "layer_replication": "layers used several times",
    "alora_invocation_tokens": "active only after certain tokens (aLoRA)",
    "trainable_token_indices": "tokens of its own",
    "target_parameters": "parameters that are no modules",
    "use_qalora": "quantized (QALoRA)",
    "use_bdlora": "block-diagonal (BD-LoRA)",
}
# Ways to begin training that leave the base model as it is; others alter it beside the adapter.
_PLAIN_BEGINNINGS: Final = {"gaussian", "eva", "orthogonal", "mica", "lora_ga"}


class BadLoraConfig(ValueError):
    """An adapter_config.json that cannot be served; the message names the field and its value."""


@dataclass(frozen=True, slots=True)
class LoraConfig:
    """What of it counts."""

    rank: int  # the largest, where modules differ
    target_modules: tuple[str, ...]  # sorted names; empty: a pattern, so that the tensors decide
    base_model: str  # as the trainer named it; may be empty
    ranks_differ: bool = False  # some modules have less than `rank`

    @classmethod
    def parse(cls, text: bytes) -> LoraConfig:
        """Reads the file. Raises `BadLoraConfig`."""
        config = _object(text)
        if config.get("peft_type", "LORA") != "LORA":
            raise BadLoraConfig(f"peft_type is {config['peft_type']!r}, only LORA can be served")
        for name, meaning in _NOT_SERVED.items():
            if config.get(name):
                raise BadLoraConfig(f"{name} is {config[name]!r}: {meaning} cannot be served")
        if config.get("bias", "none") != "none":
            raise BadLoraConfig(f"bias is {config['bias']!r}, only 'none' can be served")
        _check_beginning(config.get("init_lora_weights", True))
        ranks = [_rank("r", config.get("r")), *_pattern_ranks(config.get("rank_pattern") or {})]
        base = config.get("base_model_name_or_path")
        return cls(
            rank=max(ranks),
            target_modules=_modules(config.get("target_modules")),
            base_model=base if isinstance(base, str) else "",
            ranks_differ=len(ranks) > 1,
        )


def _object(text: bytes) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadLoraConfig(f"it is no JSON: {error}") from None
    if not isinstance(config, dict):
        raise BadLoraConfig("it is no JSON object")
    return config


def _rank(where: str, rank: Any) -> int:
    if type(rank) is not int or not 1 <= rank <= LARGEST_RANK:
        raise BadLoraConfig(f"{where} is {rank!r}: a rank is a number from 1 to {LARGEST_RANK}")
    return rank


def _pattern_ranks(pattern: Any) -> list[int]:
    if not isinstance(pattern, dict):
        raise BadLoraConfig(f"rank_pattern is {pattern!r}, it maps names of modules to ranks")
    return [_rank(f"rank_pattern[{name!r}]", rank) for name, rank in pattern.items()]


def _modules(modules: Any) -> tuple[str, ...]:
    if isinstance(modules, str) and modules:
        return ()
    if not isinstance(modules, list) or not modules:
        raise BadLoraConfig(f"target_modules is {modules!r}: it has to name modules")
    if not all(isinstance(name, str) and name for name in modules):
        raise BadLoraConfig(f"target_modules is {modules!r}: names are texts")
    return tuple(sorted(set(modules)))


def _check_beginning(beginning: Any) -> None:
    if isinstance(beginning, str) and beginning.lower() not in _PLAIN_BEGINNINGS:
        raise BadLoraConfig(
            f"init_lora_weights is {beginning!r}, which alters the base model too; convert it to a "
            "plain LoRA with PEFT's path_initial_model_for_weight_conversion"
        )


__all__ = ["LARGEST_RANK", "BadLoraConfig", "LoraConfig"]
