"""An `adapter_config.json`, as far as it decides whether and how an adapter can be served.

PEFT writes it (https://huggingface.co/docs/peft, "LoraConfig"). What changes an adapter's meaning
and no engine here computes is refused by name, so that nobody gets answers from half an adapter.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from penstock.adapters.shown import shown

LARGEST_RANK: Final = 512

_LARGEST_ALPHA: Final = 1e6
_MOST_NAMES: Final = 4096
# Keys of patterns are regular expressions, which an engine runs while its streams wait: only those
# whose matching takes a time that grows with their length and no faster.
_PLAIN_KEY: Final = re.compile(r"\^?(?:\w|\\?\.){1,200}\$?", re.ASCII)

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
    "arrow_config": "routed among adapters (Arrow)",
    "kasa_config": "weighted by singular values (KaSA)",
}
# Ways to begin training that leave the base model as it is; others alter it beside the adapter.
_PLAIN_BEGINNINGS: Final = {"gaussian", "eva", "orthogonal", "mica", "lora_ga"}


class BadLoraConfig(ValueError):
    """An adapter_config.json that cannot be served; the message names the field and its value."""


@dataclass(frozen=True, slots=True)
class LoraConfig:
    """What of it counts."""

    default_rank: int  # of modules that no pattern names
    rank_pattern: tuple[tuple[str, int], ...]  # the first key that fits a module decides
    target_modules: tuple[str, ...]  # sorted names; empty: a pattern, so that the tensors decide
    base_model: str  # as the trainer named it; may be empty

    @property
    def rank(self) -> int:
        """The largest that it names, which is what engines make room for."""
        return max(self.default_rank, *(rank for _, rank in self.rank_pattern), 0)

    def rank_of(self, module: str) -> int:
        """The rank of a module, by PEFT's rule: a key fits the end of its path."""
        for key, rank in self.rank_pattern:
            if re.match(rf"(.*\.)?({key})$", module):
                return rank
        return self.default_rank

    @classmethod
    def parse(cls, text: bytes) -> LoraConfig:
        """Reads the file. Raises `BadLoraConfig`."""
        config = _object(text)
        if config.get("peft_type", "LORA") != "LORA":
            _refuse("peft_type", config["peft_type"], "only LORA can be served")
        for name, meaning in _NOT_SERVED.items():
            if config.get(name):
                _refuse(name, config[name], f"{meaning} cannot be served")
        if config.get("bias", "none") != "none":
            _refuse("bias", config["bias"], "only 'none' can be served")
        _check_beginning(config.get("init_lora_weights", True))
        _check_alpha("lora_alpha", config.get("lora_alpha"))
        for key, alpha in _pattern(config, "alpha_pattern"):
            _check_alpha(f"alpha_pattern[{key!r}]", alpha)
        base = config.get("base_model_name_or_path")
        return cls(
            default_rank=_rank("r", config.get("r")),
            rank_pattern=tuple(
                (key, _rank(f"rank_pattern[{key!r}]", rank))
                for key, rank in _pattern(config, "rank_pattern")
            ),
            target_modules=_modules(config.get("target_modules")),
            base_model=base if isinstance(base, str) and base.isprintable() else "",
        )


def _refuse(name: str, value: object, why: str) -> NoReturn:
    raise BadLoraConfig(f"{name} is {shown(value)}: {why}")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _object(text: bytes) -> dict[str, Any]:
    try:
        config = json.loads(text.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadLoraConfig(f"it is no JSON: {error}") from None
    if not isinstance(config, dict):
        raise BadLoraConfig("it is no JSON object")
    return config


def _rank(where: str, rank: Any) -> int:
    if type(rank) is not int or not 1 <= rank <= LARGEST_RANK:
        _refuse(where, rank, f"a rank is a number from 1 to {LARGEST_RANK}")
    return rank


def _check_alpha(where: str, alpha: Any) -> None:
    if type(alpha) is int and abs(alpha) <= _LARGEST_ALPHA:
        return
    if type(alpha) is not float or not math.isfinite(alpha) or abs(alpha) > _LARGEST_ALPHA:
        _refuse(where, alpha, f"it is a number of at most {_LARGEST_ALPHA:.0f}")


def _pattern(config: dict[str, Any], name: str) -> list[tuple[str, Any]]:
    pattern = config.get(name) or {}
    if not isinstance(pattern, dict) or len(pattern) > _MOST_NAMES:
        _refuse(name, pattern, f"it maps at most {_MOST_NAMES} names of modules to numbers")
    for key in pattern:
        if not _PLAIN_KEY.fullmatch(key):
            _refuse(f"a key of {name}", key, "letters, digits, _ and . are what it may be made of")
    return list(pattern.items())


def _modules(modules: Any) -> tuple[str, ...]:
    if isinstance(modules, str) and modules:
        return ()
    if not isinstance(modules, list) or not 1 <= len(modules) <= _MOST_NAMES:
        _refuse("target_modules", modules, f"it has to name modules, at most {_MOST_NAMES}")
    if not all(isinstance(name, str) and name and name.isprintable() for name in modules):
        _refuse("target_modules", modules, "names are printable texts")
    return tuple(sorted(set(modules)))


def _check_beginning(beginning: Any) -> None:
    if isinstance(beginning, str) and beginning.lower() not in _PLAIN_BEGINNINGS:
        _refuse(
            "init_lora_weights",
            beginning,
            "that alters the base model too; convert it to a plain LoRA with PEFT's "
            "path_initial_model_for_weight_conversion",
        )
