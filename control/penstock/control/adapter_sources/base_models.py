"""The base models that this machine can read, as far as it decides which adapters fit them.

A path, a model that ships with Penstock, a snapshot in the cache of Hugging Face's tools. Only the
headers of the weights are read, each time: some milliseconds, and never what a file said before it
was replaced.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from penstock.adapters.base_model import module_shapes, weights_among
from penstock.adapters.safetensors import (
    PREFIX_BYTES,
    BadSafetensors,
    Tensor,
    header_length,
    read_header,
)
from penstock.control.adapter_sources.directories import shipped_models
from penstock.control.adapter_sources.hugging_face import cached_model


class MachineModels:
    """The models that the head's machine can read. For any number of threads."""

    def __init__(self, hub_cache: Path) -> None:
        """`hub_cache`: of Hugging Face's tools."""
        self._hub_cache = hub_cache

    def shapes(self, model: str, revision: str) -> Mapping[str, tuple[int, int]]:
        """Inputs and outputs of each module by its path; empty where they cannot be told: a model
        that only other machines have, weights that are packed or not all there. `revision`: of a
        model of the hub. Blocks."""
        try:
            directory = self._directory(model, revision)
            names = weights_among(os.listdir(directory)) if directory else ()
            files = [_tensors_of(Path(directory or "", name)) for name in names]
        except (OSError, ValueError):  # weights of another format; a NUL in the path
            return {}
        return module_shapes(chain.from_iterable(files))

    def _directory(self, model: str, revision: str) -> Path | None:
        if model.startswith("/"):
            return Path(model)
        return shipped_models().get(model) or cached_model(model, revision, self._hub_cache)


def _tensors_of(path: Path) -> tuple[Tensor, ...]:
    """Raises `BadSafetensors`, `OSError`."""
    if not path.is_file():  # opening a pipe would wait for its other end
        raise BadSafetensors(f"{path} is no file")
    with path.open("rb") as file:
        length = header_length(file.read(PREFIX_BYTES))
        header = file.read(length)
        return read_header(header, path.stat().st_size - PREFIX_BYTES - length)
