"""Whether an adapter's config and tensors agree, and fit what a base-model family allows.

An engine finds out too late: some mistakes end it, and others pass, with noise for answers. So this
is looked at when an adapter is registered, from its config and the header of its weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from penstock.adapters.lora_config import LARGEST_RANK, LoraConfig
from penstock.adapters.safetensors import Tensor

# The rows of A and the columns of B are the rank.
_PAIR: Final = re.compile(r"(?:base_model\.model\.)?(?P<module>.+)\.lora_(?P<side>[AB])\.weight")
_FLOATS: Final = ("F32", "F16", "BF16")


class UnfitAdapter(ValueError):
    """An adapter whose parts do not fit each other, or not the family; the message says which."""


@dataclass(frozen=True, slots=True)
class FamilyLimits:
    """What the deployments of a base-model family take."""

    max_rank: int = LARGEST_RANK
    modules: frozenset[str] = frozenset()  # last parts of their names, "q_proj"; empty: any
    max_bytes: int = 4 << 30  # of the weights


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """What an adapter turned out to be."""

    rank: int  # the largest of its modules
    modules: tuple[str, ...]  # last parts of their names, sorted
    pairs: int  # modules that it changes


def facts_of(config: LoraConfig, tensors: Iterable[Tensor]) -> AdapterFacts:
    """What the tensors are, where they are what the config says. Raises `UnfitAdapter`."""
    pairs: dict[str, dict[str, Tensor]] = {}
    for tensor in tensors:
        module, side = _place_of(tensor)
        if side in pairs.setdefault(module, {}):
            raise UnfitAdapter(f"lora_{side} of {module} is there twice")
        pairs[module][side] = tensor
    if not pairs:
        raise UnfitAdapter("its weights hold no tensor")
    ranks = [_rank_of(module, sides, config) for module, sides in pairs.items()]
    if max(ranks) != config.rank and not config.ranks_differ:
        raise UnfitAdapter(f"its tensors have rank {max(ranks)}, its config says {config.rank}")
    _check_named(config, pairs)
    modules = sorted({module.rpartition(".")[2] for module in pairs})
    return AdapterFacts(max(ranks), tuple(modules), len(pairs))


def check_family(facts: AdapterFacts, weights_bytes: int, limits: FamilyLimits) -> None:
    """Raises `UnfitAdapter` where the family's deployments could not take the adapter."""
    if weights_bytes > limits.max_bytes:
        raise UnfitAdapter(
            f"its weights have {weights_bytes} bytes, at most {limits.max_bytes} are taken"
        )
    if facts.rank > limits.max_rank:
        raise UnfitAdapter(
            f"its rank is {facts.rank}, its family's deployments have max_adapter_rank "
            f"{limits.max_rank}"
        )
    unknown = sorted(set(facts.modules) - limits.modules) if limits.modules else []
    if unknown:
        raise UnfitAdapter(
            f"it changes {', '.join(unknown)}, of its family only "
            f"{', '.join(sorted(limits.modules))} can be changed"
        )


def _place_of(tensor: Tensor) -> tuple[str, str]:
    found = _PAIR.fullmatch(tensor.name)
    if found is None:
        raise UnfitAdapter(
            f"tensor {tensor.name} is none of a LoRA pair: lora_A.weight and lora_B.weight of a "
            "module are what can be served"
        )
    if len(tensor.shape) != 2 or 0 in tensor.shape:
        raise UnfitAdapter(f"tensor {tensor.name} has the shape {list(tensor.shape)}, not [n, m]")
    if tensor.dtype not in _FLOATS:
        raise UnfitAdapter(
            f"tensor {tensor.name} is of type {tensor.dtype}, served are {', '.join(_FLOATS)}"
        )
    return found["module"], found["side"]


def _rank_of(module: str, sides: dict[str, Tensor], config: LoraConfig) -> int:
    if len(sides) != 2:
        (side,) = sides
        raise UnfitAdapter(f"{module} has lora_{side} alone, without the other half")
    rank, other = sides["A"].shape[0], sides["B"].shape[1]
    if rank != other:
        raise UnfitAdapter(f"{module} has rank {rank} in lora_A and {other} in lora_B")
    if rank > config.rank or (rank != config.rank and not config.ranks_differ):
        raise UnfitAdapter(f"{module} has rank {rank}, its config says {config.rank}")
    return rank


def _check_named(config: LoraConfig, modules: Iterable[str]) -> None:
    """Every module that is changed has to be one that the config names. Not the other way round:
    PEFT passes over a name that the base model lacks."""
    for module in modules if config.target_modules else ():
        if not any(f".{module}".endswith(f".{name}") for name in config.target_modules):
            raise UnfitAdapter(
                f"{module} is changed, the config's target_modules are "
                f"{', '.join(config.target_modules)}"
            )


__all__ = ["AdapterFacts", "FamilyLimits", "UnfitAdapter", "check_family", "facts_of"]
