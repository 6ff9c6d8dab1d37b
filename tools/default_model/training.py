"""The training loop: batches of about the same number of tokens, Muon and AdamW.

Deterministic on one machine: the number of threads is fixed and torch is told to refuse
operations whose result may vary. In float32, which a CPU without AMX multiplies twice as fast as
bf16. Needs torch and transformers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

import torch
from torch.nn import functional
from transformers import LlamaForCausalLM

from tools.default_model.muon import Muon
from tools.default_model.tokens import PAD, Encoder, Example

THREADS: Final = 1  # more would make a busy machine slower, and change the last bits
_POOL: Final = 32  # batches that are cut from one sorted pool of examples


@dataclass(frozen=True, slots=True)
class Course:
    """How long and how hard to train. A batch holds at most `tokens` tokens, padding included."""

    steps: int
    rate: float
    tokens: int = 2048

    def share(self, step: int) -> float:
        """The share of the rate to train with at a step: up in a twentieth, then down to none."""
        warm = max(1, self.steps // 20)
        return min((step + 1) / warm, (self.steps - step) / (self.steps - warm + 1))


def settle(seed: int) -> None:
    """Makes torch repeatable from here on."""
    torch.manual_seed(seed)
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # nothing here reads such memory


def train(
    model: LlamaForCausalLM,
    encoder: Encoder,
    rng: Random,
    course: Course,
    report: Callable[[str], None],
) -> float:
    """Trains the parameters that want a gradient; returns the mean loss of the last steps."""
    wanted = [p for p in model.parameters() if p.requires_grad]
    optimizers = _optimizers(model, course.rate)
    schedules = [torch.optim.lr_scheduler.LambdaLR(o, course.share) for o in optimizers]
    model.train()
    losses: list[float] = []
    began = time.monotonic()
    for step, batch in zip(range(course.steps), batches(rng, encoder, course.tokens), strict=False):
        loss = _loss(model, batch)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(wanted, 1.0)
        for turn in (*optimizers, *schedules):
            turn.step()
        losses = [*losses[-24:], loss.item()]
        if step % 25 == 24 or step == course.steps - 1:
            mean = sum(losses) / len(losses)
            seconds = time.monotonic() - began
            report(f"step {step + 1}/{course.steps}  loss {mean:.4f}  {seconds:.0f} s")
    return sum(losses) / len(losses)


def _optimizers(model: LlamaForCausalLM, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, which so learn in half the steps; AdamW for the rest.

    LoRA's thin matrices are among the rest.
    """
    muon: list[torch.nn.Parameter] = []
    adam: list[torch.nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            layer = "layers" in name and parameter.ndim == 2 and "lora_" not in name
            (muon if layer else adam).append(parameter)
    made: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(adam, lr=rate, weight_decay=0.05, betas=(0.9, 0.98))
    ]
    if muon:
        made.append(Muon(muon, lr=2 * rate, decay=0.05))
    return made


def batches(rng: Random, encoder: Encoder, tokens: int) -> Iterator[list[Example]]:
    """Endless batches of examples of about the same length, in random order."""
    while True:
        pool: list[Example] = []
        while sum(len(example.ids) for example in pool) < tokens * _POOL:
            pool += [encoder.example(rng) for _ in range(64)]
        pool.sort(key=lambda example: len(example.ids))
        cut: list[list[Example]] = [[]]
        for example in pool:
            if cut[-1] and (len(cut[-1]) + 1) * len(example.ids) > tokens:
                cut.append([])
            cut[-1].append(example)
        rng.shuffle(cut)
        yield from cut


def _loss(model: LlamaForCausalLM, batch: list[Example]) -> torch.Tensor:
    """Cross entropy of the tokens that are to be said; the logits of the others are not made."""
    width = max(len(example.ids) for example in batch)
    ids = torch.tensor([[*e.ids, *[PAD] * (width - len(e.ids))] for e in batch])
    said = torch.tensor([[*e.said, *[False] * (width - len(e.said))] for e in batch])
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    logits = model.lm_head(hidden[said[:, 1:]])
    return functional.cross_entropy(logits, ids[:, 1:][said[:, 1:]])
