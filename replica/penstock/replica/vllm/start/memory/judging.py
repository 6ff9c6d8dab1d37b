"""A model and settings in, a sum and advice out: reads a model's files, then all is arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.replica.default_model import engine_args as shipped_args
from penstock.replica.values import CannotLoad
from penstock.replica.vllm.start import checks
from penstock.replica.vllm.start.arguments import Circumstances, named, own_settings
from penstock.replica.vllm.start.memory.asked import Asked, asked
from penstock.replica.vllm.start.memory.downloads import downloaded
from penstock.replica.vllm.start.memory.gpus import gpu_bytes, gpu_names
from penstock.replica.vllm.start.memory.shape import Shape, shape_of
from penstock.replica.vllm.start.memory.sums import (
    GIB,
    Machine,
    Sum,
    Verdict,
    on_cpus,
    on_device,
)
from penstock.replica.vllm.start.memory.weights import Weights, loaded, weights_in

_KV: Final = "cpu_kvcache_gib"
_CONTEXTS: Final = tuple(1024 << power for power in range(8, -1, -1))
_LEAST_KV: Final = 0.125
_ELSEWHERE: Final = ("hf_overrides", "hf_config_path", "revision", "download_dir", "load_format")
Change = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Model:
    """What there is to know of a model before it is loaded."""

    place: checks.ModelPlace
    files: Path | None  # where they lie; None: not on this machine
    shape: Shape = field(default_factory=Shape)
    weights: Weights = field(default_factory=Weights)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be started, and what with."""

    engine_args: Mapping[str, str]
    adapter_slots: int = 0
    adapter_rank: int = 0


def read_model(place: checks.ModelPlace) -> Model:
    """A model's measures, from its config and the headers of its weights. Raises `CannotLoad`, and
    `OSError` where a file cannot be read."""
    files = place.directory or downloaded(place.name)
    if files is None:
        return Model(place, None)
    config = checks.read_json(files / "config.json", place.name)
    return Model(place, files, shape_of(config), weights_in(loaded(checks.weight_files(files))))


def judge(model: Model, order: Order, machine: Machine) -> Sum:
    """What it takes. Raises `CannotLoad` for settings of ours that cannot be used."""
    if unknown := _unknown(model, order):
        return Sum(free=machine.free, unknown=unknown)
    wanted = _asked(model, order, machine)
    if machine.device:
        return on_device(model.weights, model.shape, wanted, machine)
    one = (wanted.threads or checks.fitting_threads(model.place)) == 1
    forked = one and wanted.ranks == 1
    return on_cpus(model.weights, model.shape, wanted, free=machine.free, forked=forked)


def check(place: checks.ModelPlace, order: Order, machine: Machine) -> None:
    """Raises `CannotLoad` where it cannot be started there."""
    model = read_model(place)
    found = judge(model, order, machine)
    if found.verdict is Verdict.TOO_LARGE:
        raise CannotLoad(refusal(model, found, advice(model, order, machine)))


def advice(model: Model, order: Order, machine: Machine) -> tuple[str, ...]:
    """Settings, each of which makes it fit, and other machines. Only what the sum confirms."""
    found = [
        next((_said(change) for change in kind if _fits(model, order, machine, change)), "")
        for kind in _changes(model, order, machine)
    ]
    if machine.device:
        found.append(_other_device(model, order, machine))
    return (*filter(None, found), "another node", "a model that is smaller or quantised")


def _said(change: Change) -> str:
    return " with ".join(f"{key}={value}" for key, value in change.items())


def _fits(model: Model, order: Order, machine: Machine, change: Change) -> bool:
    changed = Order({**order.engine_args, **change}, order.adapter_slots, order.adapter_rank)
    return judge(model, changed, machine).verdict is Verdict.FITS


def refusal(model: Model, found: Sum, why_not: tuple[str, ...]) -> str:
    """One line that says why it is not started."""
    parts = ", ".join(f"{line.what} {line.bytes / GIB:.2f}" for line in found.lines)
    free = f", {found.free / GIB:.2f} GiB are free" if found.free >= 0 else ""
    cause = f"{found.short}; " if found.short else ""
    return (
        f"model {model.place.name}: {cause}it needs about {found.needed / GIB:.2f} GiB of memory "
        f"({parts}){free}; take {', or '.join(why_not)}"
    )


def _unknown(model: Model, order: Order) -> str:
    """Why nothing is known of its size; empty: all is."""
    if model.files is None or not model.weights.stored:
        return f"{model.place.name} is not on this machine yet"
    found = [key for key in named(order.engine_args) if key in _ELSEWHERE]
    return f"{', '.join(found)} may make another model of it" if found else ""


def _asked(model: Model, order: Order, machine: Machine) -> Asked:
    circumstances = Circumstances(
        not machine.device,
        order.adapter_slots,
        order.adapter_rank,
        checks.longest_context(model.place),
        checks.writes_text(model.place),
        shipped_args(model.place.name),
    )
    return asked(order.engine_args, circumstances, model.shape, machine.device)


def _changes(model: Model, order: Order, machine: Machine) -> Iterator[list[Change]]:
    """Settings that may help, by kinds, and of a kind those first that cost least."""
    now = _asked(model, order, machine)
    shorter: list[Change] = [
        {"max_model_len": str(length)} for length in _CONTEXTS if length < now.context
    ]
    if not machine.device and "kv_cache_memory_bytes" not in order.engine_args:
        yield _other_caches(model, order, machine, shorter)
    yield shorter
    yield [{"max_num_seqs": str(now.sequences // 4)}] if now.sequences >= 32 else []
    yield [{"tensor_parallel_size": str(2 * now.ranks)}] if machine.device else []
    yield [{"dtype": "bfloat16"}] if now.number == 4 else []


def _other_caches(
    model: Model, order: Order, machine: Machine, shorter: list[Change]
) -> list[Change]:
    """A KV cache as large as one sequence takes, or as small as what is free asks for."""
    now, found = _asked(model, order, machine), judge(model, order, machine)
    least = model.shape.kv_bytes(now.kv_number) * now.context / GIB
    changes: list[Change] = [{_KV: _steps(least, up=True)}] if found.short else []
    missing = found.needed - machine.free if machine.free >= 0 else 0
    kv = own_settings(order.engine_args).kv_cache_bytes
    if 0 < missing <= kv - _LEAST_KV * GIB:
        smaller = {_KV: _steps((kv - missing) / GIB, up=False)}
        changes += [smaller, *({**smaller, **each} for each in shorter)]
    return changes


def _steps(gib: float, *, up: bool) -> str:
    return f"{(math.ceil if up else math.floor)(gib / _LEAST_KV) * _LEAST_KV:g}"


def _other_device(model: Model, order: Order, machine: Machine) -> str:
    """The smallest that it would fit, where it does not fit this one; empty: none."""
    for name in gpu_names():
        size = gpu_bytes(name)
        there = Machine(size, size, name)
        if size > machine.device and judge(model, order, there).verdict is Verdict.FITS:
            return f"a GPU such as {name} ({size / GIB:.0f} GiB)"
    return ""
