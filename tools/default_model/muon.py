"""Muon in float32: torch's own works in bf16, which takes twice as long on a CPU without AMX.

Needs torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch

_MOMENTUM: Final = 0.95
_STEPS: Final = 5
_A, _B, _C = 3.4445, -4.7750, 2.0315  # of the iteration; as Keller Jordan found them


class Muon(torch.optim.Optimizer):  # type: ignore[misc]
    """Orthogonal updates of matrices with momentum; those of one shape are worked on at once.

    An update is as large as AdamW's would be, so that one rate suits both.
    """

    def __init__(self, matrices: Iterable[torch.nn.Parameter], lr: float, decay: float) -> None:
        shapes: dict[torch.Size, list[torch.nn.Parameter]] = {}
        for matrix in matrices:
            shapes.setdefault(matrix.shape, []).append(matrix)
        super().__init__([{"params": alike} for alike in shapes.values()], {"lr": lr, "wd": decay})

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Callable[[], Any] | None = None) -> None:
        """One step for all of them."""
        assert closure is None, "Muon asks for gradients that are there already"
        for group in self.param_groups:
            gradients = torch.stack([matrix.grad for matrix in group["params"]])
            state = self.state[group["params"][0]]
            momentum = state.setdefault("momentum", torch.zeros_like(gradients))
            momentum.lerp_(gradients, 1 - _MOMENTUM)
            updates = _orthogonal(gradients.lerp(momentum, _MOMENTUM))
            size = 0.2 * math.sqrt(max(updates.shape[1:]))
            for matrix, update in zip(group["params"], updates, strict=True):
                matrix.mul_(1 - group["lr"] * group["wd"])
                matrix.add_(update, alpha=-group["lr"] * size)


def _orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """The nearest orthogonal matrices, about: Newton and Schulz's iteration."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(_STEPS):
        square = x @ x.mT
        x = _A * x + (_B * square + _C * square @ square) @ x
    return x.mT if tall else x
