"""What an engine takes, line by line, beside what is free. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from penstock.replica.vllm.start.memory.asked import Asked
from penstock.replica.vllm.start.memory.shape import Shape
from penstock.replica.vllm.start.memory.weights import Weights

MIB: Final = 1 << 20
GIB: Final = 1 << 30

# Measured on CPUs, see docs/measured.md: the replica and its engine's process. The engine is forked
# of the replica where the model runs on one thread, and imports vLLM once more where it does not.
FORKED: Final = 800 * MIB
SPAWNED: Final = 1200 * MIB
WORKER: Final = 550 * MIB  # each process more, of an engine that is spread over several
# Assumed, of a GPU: CUDA's context and libraries' workspaces; graphs of a decode step.
CONTEXT: Final = 600 * MIB
GRAPHS: Final = 512 * MIB
TRUE_WITHIN: Final = 0.1
"""A start is refused where more is missing than the sum may be wrong by."""

DRIVERS_PART: Final = 0.05
"""By so much a driver may tell of more memory than CUDA has to give."""


class Verdict(StrEnum):
    """Whether it can be started."""

    FITS = "fits"
    TIGHT = "tight"  # it can, and may run out of memory under load
    TOO_LARGE = "too_large"
    UNKNOWN = "unknown"  # nothing tells how large it is


class Line(NamedTuple):
    """A part of the sum."""

    what: str
    bytes: int
    note: str = ""
    margin: bool = False  # taken under load at the most: never a reason to refuse a start


class Machine(NamedTuple):
    """Where it is to run. `device`: bytes of each accelerator, 0: on CPUs. `free`: bytes that can
    be had there, -1: not known."""

    device: int = 0
    free: int = -1
    name: str = ""


@dataclass(frozen=True, slots=True)
class Sum:
    """What one replica takes of the machine's memory, or of each of its accelerators."""

    lines: tuple[Line, ...] = ()
    free: int = -1
    unknown: str = ""  # why there is no sum
    short: str = ""  # why the engine would refuse to start
    granted: int = -1  # bytes that its settings let it have, -1: all that is free

    @property
    def needed(self) -> int:
        """All of it."""
        return sum(line.bytes for line in self.lines)

    @property
    def least(self) -> int:
        """What has to be free for the start: the sum without margins may be too large; what a GPU's
        utilization grants, vLLM wants whole."""
        if self.granted >= 0:
            return int(self.granted * (1 - DRIVERS_PART))
        certain = sum(line.bytes for line in self.lines if not line.margin)
        return int(certain * (1 - TRUE_WITHIN))

    @property
    def reason(self) -> str:
        """Why it does not fit, or is not known; empty: it fits."""
        if self.unknown or self.short:
            return self.unknown or self.short
        limits = [limit for limit in (self.free, self.granted) if limit >= 0]
        missing = self.needed - min(limits, default=self.needed)
        return f"{gib(missing)} GiB are missing" if missing > 0 else ""

    @property
    def verdict(self) -> Verdict:
        """Whether it can be started."""
        if self.unknown:
            return Verdict.UNKNOWN
        if self.short or 0 <= self.free < self.least:
            return Verdict.TOO_LARGE
        return Verdict.TIGHT if self.reason else Verdict.FITS


def on_cpus(weights: Weights, shape: Shape, asked: Asked, *, free: int, forked: bool) -> Sum:
    """Of the machine's memory; `forked`: the engine's process is the replica's own fork."""
    loaded = weights.loaded(asked.number) // asked.narrowed
    # The layer that makes logits is packed for the CPU beside the embeddings that it came from.
    packed = 0 if shape.packed else shape.vocabulary * shape.hidden * asked.number
    kv = 0 if shape.encodes else asked.kv_bytes
    processes = FORKED if forked else SPAWNED
    lines = [
        Line("weights", loaded, _width(weights, asked)),
        Line("output layer", packed, "packed for the CPU, beside its weights"),
        Line("KV cache", kv, _sequences(shape, asked, kv)),
        *_adapters(shape, asked),
        *_margins(shape, asked),
        Line("processes", processes, "replica and engine, as measured on CPUs"),
    ]
    if asked.ranks > 1:
        lines.append(Line("workers", asked.ranks * WORKER, f"{asked.ranks} processes"))
    return Sum(_told(lines), free, short=_short(shape, asked, asked.kv_bytes))


def on_device(weights: Weights, shape: Shape, asked: Asked, machine: Machine) -> Sum:
    """Of the memory of each accelerator: the KV cache takes what the rest leaves of its share."""
    loaded = max(0, weights.loaded(asked.number) // asked.narrowed - asked.offloaded)
    fixed = [
        Line("weights", loaded // asked.ranks, _width(weights, asked) + _shared(asked)),
        *_adapters(shape, asked),
        *_margins(shape, asked),
        Line("CUDA graphs", 0 if asked.eager else GRAPHS, "margin: assumed", margin=True),
        Line("CUDA context", CONTEXT, "assumed"),
    ]
    share = int(machine.device * asked.utilization)
    least = _one_sequence(shape, asked)
    kv = asked.kv_bytes or max(least, share - sum(line.bytes for line in fixed))
    lines = _told([*fixed, Line("KV cache", kv, _sequences(shape, asked, kv))])
    if asked.kv_bytes:
        return Sum(lines, machine.free, short=_short(shape, asked, asked.kv_bytes))
    certain = sum(line.bytes for line in fixed if not line.margin)
    return Sum(lines, machine.free, short=_beyond(asked, share, certain, least), granted=share)


def _beyond(asked: Asked, share: int, certain: int, least: int) -> str:
    """Why what utilization grants is not enough, whatever a step takes."""
    if (certain + least) * (1 - TRUE_WITHIN) <= share:
        return ""
    said = f"gpu_memory_utilization={asked.utilization:g} gives it {gib(share)} GiB, "
    said += f"weights and context take {gib(certain)} GiB"
    one = f", one sequence of {asked.context:,} tokens {gib(least)} GiB of KV cache"
    return said + (one if least else "")


def _told(lines: list[Line]) -> tuple[Line, ...]:
    return tuple(line for line in lines if line.bytes)


def _adapters(shape: Shape, asked: Asked) -> list[Line]:
    size = asked.adapters * asked.rank * shape.adapter_numbers() * asked.number // asked.ranks
    return [Line("adapters", size, f"{asked.adapters} slots of rank {asked.rank}")]


def _margins(shape: Shape, asked: Asked) -> list[Line]:
    """What a full step takes for a moment."""
    step = asked.step * shape.step_numbers() * asked.number // asked.ranks
    logits = asked.sequences * shape.vocabulary * 4
    return [
        Line("activations", step, f"margin: a step of {asked.step:,} tokens", margin=True),
        Line("logits", logits, f"margin: {asked.sequences:,} sequences at once", margin=True),
    ]


def _sequences(shape: Shape, asked: Asked, kv: int) -> str:
    each = shape.kv_bytes(asked.kv_number) // asked.ranks
    if not each or not asked.context:
        return "" if shape.plain else "its layers keep keys and values in other ways: not judged"
    tokens = kv // each
    return f"{tokens:,} tokens: {tokens // asked.context:,} sequences of {asked.context:,} at once"


def _one_sequence(shape: Shape, asked: Asked) -> int:
    return shape.kv_bytes(asked.kv_number) * asked.context // asked.ranks


def _short(shape: Shape, asked: Asked, kv: int) -> str:
    """Why no engine starts with such a KV cache: the longest sequence has to find room in it."""
    least = _one_sequence(shape, asked)
    if least <= kv:
        return ""
    return (
        f"one sequence of {asked.context:,} tokens takes {gib(least)} GiB of KV cache, "
        f"{gib(kv)} GiB are asked for"
    )


def _width(weights: Weights, asked: Asked) -> str:
    said = f"{weights.stored / MIB:,.0f} MiB in files"
    if asked.narrowed > 1:
        return f"{said}, made {asked.narrowed} times smaller"
    if weights.floating and weights.loaded(asked.number) != weights.stored:
        return f"{said}, run with {8 * asked.number} bits"
    return said


def _shared(asked: Asked) -> str:
    return f", shared by {asked.ranks}" if asked.ranks > 1 else ""


def gib(count: int) -> str:
    """Bytes for a person."""
    return f"{count / GIB:.2f}" if count < 10 * GIB else f"{count / GIB:.1f}"
