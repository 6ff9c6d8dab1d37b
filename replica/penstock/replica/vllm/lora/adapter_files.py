"""Looks at an adapter's files before vLLM does, by the rules of the adapters room.

vLLM meets a bad adapter inside its engine, where some mistakes end it, and others pass: an adapter
made for another model's width answers with noise. Raises `CannotLoad`: what, where, what to do.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final

from penstock.adapters.base_model import module_shapes, weights_among
from penstock.adapters.fitness import FamilyLimits, UnfitAdapter, check_family, facts_of
from penstock.adapters.lora_config import BadLoraConfig, LoraConfig
from penstock.adapters.safetensors import (
    PREFIX_BYTES,
    BadSafetensors,
    Tensor,
    header_length,
    read_header,
)
from penstock.adapters.version import CONFIG_FILE, CONTENT_FILES, WEIGHTS_FILE
from penstock.replica.adapters.content import content_digest
from penstock.replica.adapters.values import Prepared
from penstock.replica.values import AdapterSource, CannotLoad
from penstock.replica.vllm.start.checks import ModelPlace

_LARGEST_CONFIG: Final = 1 << 20


def look_at(adapter: AdapterSource, directory: Path, limits: FamilyLimits) -> Prepared:
    """Checks the adapter's files, and reads them whole: vLLM, which reads them while streams wait,
    then finds them in the page cache."""
    who = f"adapter {adapter.name}"
    if not directory.is_dir():
        raise CannotLoad(f"{who}: there is no directory {directory}; check the path")
    for name in CONTENT_FILES:
        if not (directory / name).is_file():
            raise CannotLoad(f"{who}: {directory} holds no {name}")
    where = directory / CONFIG_FILE
    try:
        with where.open("rb") as file:
            config = LoraConfig.parse(file.read(_LARGEST_CONFIG))
        where = directory / WEIGHTS_FILE
        facts = facts_of(config, tensors_of(where))
        check_family(facts, where.stat().st_size, limits)
        digest = content_digest(directory)
    except (BadLoraConfig, BadSafetensors, UnfitAdapter) as error:
        raise CannotLoad(f"{who}: {where}: {error}") from None
    except OSError as error:
        raise CannotLoad(f"{who}: {where} cannot be read: {error}") from None
    if adapter.digest and digest != adapter.digest:
        raise CannotLoad(
            f"{who}: the bytes in {directory} have sha256 {digest}, they are to be {adapter.digest}"
        )
    return Prepared(replace(adapter, digest=digest), directory.resolve(), facts.rank)


def shapes_of(place: ModelPlace) -> dict[str, tuple[int, int]]:
    """Inputs and outputs of each module of the model, by its path as adapters name it. Empty where
    that cannot be told: a model of the hub, packed weights, paths that adapters name otherwise."""
    if place.directory is None:
        return {}
    try:
        names = weights_among(path.name for path in place.directory.iterdir())
        files = [tensors_of(place.directory / name) for name in names]
    except (OSError, BadSafetensors):
        return {}
    return module_shapes(chain.from_iterable(files))


def tensors_of(path: Path) -> tuple[Tensor, ...]:
    """The tensors of a safetensors file, from its header. Raises `BadSafetensors`, `OSError`."""
    with path.open("rb") as file:
        length = header_length(file.read(PREFIX_BYTES))
        header = file.read(length)
        return read_header(header, path.stat().st_size - PREFIX_BYTES - length)
