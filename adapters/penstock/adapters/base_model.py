"""What modules a base model has and how wide they are, told from the headers of its weights.

Only what is certain: nothing where weights are packed, missing, or named by other paths than those
that adapters name. Whoever reads the files holds adapters against it by `FamilyLimits.shapes`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from penstock.adapters.safetensors import Tensor

_SUFFIX: Final = ".safetensors"
# Weights that are split say in each name how many files there are.
_SHARD: Final = re.compile(r"(?P<set>.+)-\d{5}-of-(?P<all>\d{5})\.safetensors")
# Weights of these types have the shape of the module; packed ones have another.
_UNPACKED: Final = ("F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")
_LAYERS: Final = "model.layers."


def weights_among(names: Iterable[str]) -> tuple[str, ...]:
    """Which of a directory's files hold a model's weights, sorted; none where some of them are not
    there, as in a download that was broken off."""
    found = tuple(sorted(name for name in names if name.endswith(_SUFFIX)))
    shards = [shard for name in found if (shard := _SHARD.fullmatch(name))]
    there = Counter((shard["set"], int(shard["all"])) for shard in shards)
    return found if all(count == told for (_, told), count in there.items()) else ()


def module_shapes(tensors: Iterable[Tensor]) -> dict[str, tuple[int, int]]:
    """Inputs and outputs of each module, by its path as adapters name it; empty where that cannot
    be told of all of them."""
    shapes: dict[str, tuple[int, int]] = {}
    for tensor in tensors:
        if tensor.dtype not in _UNPACKED:
            return {}
        if tensor.name.endswith(".weight") and len(tensor.shape) == 2:
            outputs, inputs = tensor.shape
            shapes[tensor.name.removesuffix(".weight")] = (inputs, outputs)
    if not any(name.startswith(_LAYERS) for name in shapes):
        return {}
    if embedding := shapes.get("model.embed_tokens"):
        shapes.setdefault("lm_head", embedding)  # one tensor for both
    return shapes
