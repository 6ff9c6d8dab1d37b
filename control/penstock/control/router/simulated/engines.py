"""An engine that works in steps, as vLLM does: decodes take a token each, prompts the rest."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from penstock.v1.router_pb2 import EngineView


@dataclass(frozen=True, slots=True)
class Machine:
    """What an engine takes for a step, and what moves KV between two: seconds, tokens, bytes."""

    weights: float = 13.2e-3  # the least that the layers take, however few tokens there are
    token: float = 69.9e-6  # of the layers, for each token of a prompt
    decode: float = 22.4e-6  # for each sequence that decodes
    pair: float = 3.36e-9  # of attention, for each new token of a prompt and each before it
    context: float = 0.109e-6  # of attention, for each token before one that is decoded
    budget: int = 2048  # tokens of a step
    sequences: int = 256
    block: int = 16  # tokens
    cache: int = 160_000  # tokens whose KV is kept
    bytes_a_token: int = 131_072
    bytes_a_second: float = 226e9
    layers: int = 32  # a layer is sent while the next is computed
    call: float = 1.2e-3  # of a call to an engine


A100: Final = Machine()
"""Assumed: an 8B model on an A100. Where each figure is from stands in the gateway's simulation,
`gateway_cpp/simulation/machines.h`."""


@dataclass(slots=True, eq=False)
class Sequence:
    """What an engine is to compute."""

    key: str  # what prompts with the same beginning share
    prompt: int  # tokens
    answer: int  # tokens; 0: the prompt's KV alone
    computed: int = 0  # of both
    first: asyncio.Event = field(default_factory=asyncio.Event)  # the first token is there
    done: asyncio.Event = field(default_factory=asyncio.Event)


class SimulatedEngine:
    """One task runs `run`."""

    def __init__(self, name: str, role: str = "", machine: Machine = A100) -> None:
        self.name = name
        self.role = role
        self.machine = machine
        self.computed = 0  # tokens of prompts
        self._held: OrderedDict[str, int] = OrderedDict()
        self._sequences: list[Sequence] = []
        self._has_work = asyncio.Event()

    def view(self) -> EngineView:
        """As a gateway would tell it."""
        waiting = [each for each in self._sequences if each.computed < each.prompt]
        load = len(self._sequences)
        return EngineView(
            replica_id=self.name,
            role=self.role,
            running=load - len(waiting),
            waiting=len(waiting),
            waiting_tokens=sum(each.prompt - each.computed for each in waiting),
            kv_usage=min(1.0, sum(self._held.values()) / self.machine.cache),
            places_left=max(0, self.machine.sequences - load),
            moves_kv=True,
            decoding=load,
        )

    def held(self, key: str, shared: int) -> int:
        """Tokens whose KV is here, of those that prompts of that key share; in whole blocks."""
        found = min(self._held.get(key, 0), shared)
        return found - found % self.machine.block

    def keep(self, key: str, tokens: int) -> None:
        """Their KV is here from now on; what was used longest ago goes."""
        self._held[key] = max(tokens, self._held.pop(key, 0))
        while sum(self._held.values()) > self.machine.cache:
            self._held.popitem(last=False)

    def add(self, sequence: Sequence) -> None:
        """It is to be computed. The last token of a prompt always is."""
        sequence.computed = min(sequence.computed, sequence.prompt - 1)
        self._sequences.append(sequence)
        self._has_work.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if not self._sequences:
                self._has_work.clear()
                await self._has_work.wait()
            parts, seconds = self._step()
            await asyncio.sleep(seconds)
            for sequence, tokens in parts:
                self._advance(sequence, tokens)

    def _step(self) -> tuple[list[tuple[Sequence, int]], float]:
        costs, left = self.machine, self.machine.budget
        parts = [(each, 1) for each in self._sequences if each.computed >= each.prompt]
        left -= len(parts)
        seconds = sum(costs.decode + costs.context * each.computed for each, _ in parts)
        prefill = 0
        for each in self._sequences:
            tokens = min(left, each.prompt - each.computed)
            if tokens > 0:
                parts.append((each, tokens))
                left, prefill = left - tokens, prefill + tokens
                seconds += costs.pair * tokens * (each.computed + tokens / 2)
        self.computed += prefill
        return parts, seconds + max(costs.weights, costs.token * prefill)

    def _advance(self, sequence: Sequence, tokens: int) -> None:
        sequence.computed += tokens
        if sequence.computed >= sequence.prompt:
            sequence.first.set()
            self.keep(sequence.key, sequence.computed)
        if sequence.computed >= sequence.prompt + max(0, sequence.answer - 1):
            sequence.done.set()
            self._sequences.remove(sequence)
