"""Whether an adapter's config and tensors agree, and fit what a base-model family allows.

An engine finds out too late: some mistakes end it, and others pass, with noise for answers. So this
is looked at when an adapter is registered, from its config and the header of its weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.adapters.lora_config import LARGEST_RANK, LoraConfig
from penstock.adapters.safetensors import Tensor
from penstock.adapters.shown import shown

# The rows of A and the columns of B are the rank.
_PAIR: Final = re.compile(r"(?:base_model\.model\.)?(?P<module>.+)\.lora_(?P<side>[AB])\.weight")
# PEFT keeps a copy of these base weights beside adapters of them; engines pass over it.
_COPIES: Final = (".embed_tokens.base_layer.weight", ".lm_head.base_layer.weight")
_FLOATS: Final = ("F32", "F16", "BF16")


class UnfitAdapter(ValueError):
    """An adapter whose parts do not fit each other, or not the family; the message says which."""


@dataclass(frozen=True, slots=True)
class FamilyLimits:
    """What the deployments of a base-model family take."""

    max_rank: int = LARGEST_RANK
    max_bytes: int = 4 << 30  # of the weights
    # Inputs and outputs of each module by its path, as an adapter names it; empty: not known. An
    # engine passes over a path that the model lacks, and pads what is too narrow.
    shapes: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """What an adapter turned out to be."""

    rank: int  # the largest that its config names: what an engine needs room for
    modules: tuple[str, ...]  # last parts of their names, sorted
    shapes: Mapping[str, tuple[int, int]]  # inputs and outputs of each module that it changes


def facts_of(config: LoraConfig, tensors: Iterable[Tensor]) -> AdapterFacts:
    """What the tensors are, where they are what the config says. Raises `UnfitAdapter`."""
    pairs: dict[str, dict[str, Tensor]] = {}
    for tensor in tensors:
        if tensor.name.endswith(_COPIES):
            continue
        module, side = _place_of(tensor)
        if side in pairs.setdefault(module, {}):
            raise UnfitAdapter(f"lora_{side} of {module} is there twice")
        pairs[module][side] = tensor
    if not pairs:
        raise UnfitAdapter("its weights hold no tensor")
    shapes = {module: _shape_of(module, sides, config) for module, sides in pairs.items()}
    _check_named(config, pairs)
    modules = sorted({module.rpartition(".")[2] for module in pairs})
    return AdapterFacts(config.rank, tuple(modules), shapes)


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
    for module, shape in facts.shapes.items() if limits.shapes else ():
        if limits.shapes.get(module) != shape:
            raise UnfitAdapter(_misfit(module, shape, limits.shapes.get(module)))


def _misfit(module: str, shape: tuple[int, int], of_family: tuple[int, int] | None) -> str:
    if of_family is None:
        return f"it changes {module}, which its base model does not have: it is made for another"
    return (
        f"{module} is {shape[0]} to {shape[1]} wide in it, {of_family[0]} to {of_family[1]} in its "
        "base model: it is made for another"
    )


def _place_of(tensor: Tensor) -> tuple[str, str]:
    found = _PAIR.fullmatch(tensor.name)
    if found is None:
        raise UnfitAdapter(
            f"tensor {tensor.name} is none of a LoRA pair: lora_A.weight and lora_B.weight of a "
            "module are what can be served, embeddings are not"
        )
    if "base_model.model." in found["module"] or "base_layer" in found["module"]:
        raise UnfitAdapter(f"tensor {tensor.name} names a module that engines take for another")
    if len(tensor.shape) != 2 or 0 in tensor.shape:
        raise UnfitAdapter(f"tensor {tensor.name} has the shape {list(tensor.shape)}, not [n, m]")
    if tensor.dtype not in _FLOATS:
        raise UnfitAdapter(
            f"tensor {tensor.name} is of type {tensor.dtype}, served are {', '.join(_FLOATS)}"
        )
    return found["module"], found["side"]


def _shape_of(module: str, sides: dict[str, Tensor], config: LoraConfig) -> tuple[int, int]:
    """Inputs and outputs of the module, where both halves have the config's rank."""
    if len(sides) != 2:
        (side,) = sides
        raise UnfitAdapter(f"{module} has lora_{side} alone, without the other half")
    (rank, inputs), (outputs, other) = sides["A"].shape, sides["B"].shape
    if rank != other:
        raise UnfitAdapter(f"{module} has rank {rank} in lora_A and {other} in lora_B")
    if rank != config.rank_of(module):
        raise UnfitAdapter(f"{module} has rank {rank}, its config says {config.rank_of(module)}")
    return inputs, outputs


def _check_named(config: LoraConfig, modules: Iterable[str]) -> None:
    """Every module that is changed has to be one that the config names. Not the other way round:
    PEFT passes over a name that the base model lacks."""
    names = set(config.target_modules)
    for module in modules if names else ():
        parts = module.split(".")
        if names.isdisjoint(".".join(parts[i:]) for i in range(len(parts))):
            raise UnfitAdapter(
                f"{module} is changed, the config's target_modules are "
                f"{shown(', '.join(config.target_modules))}"
            )
