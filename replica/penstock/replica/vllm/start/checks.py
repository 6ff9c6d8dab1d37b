"""Looks at a model's files, and at the machine, before vLLM does, whose words come much later.

Raises `CannotLoad`: what, where, and what to do. Reads files, imports nothing heavy.
"""

from __future__ import annotations

import json
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.replica.default_model import shipped
from penstock.replica.values import CannotLoad

TESTED_VLLM: Final = "0.32."
"""The versions of vLLM whose inside (`surface/`) was read and tested."""

_TOKENIZERS: Final = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json", "vocab.txt")
_WEIGHTS: Final = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
_WRITERS: Final = ("ForCausalLM", "LMHeadModel")
_HUB_ID: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")
_SMALL_BYTES: Final = 256 << 20
_LARGEST_JSON: Final = 64 << 20
_MEMINFO: Final = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """Where a model is: a directory, or None for an id that the model hub knows."""

    name: str
    directory: Path | None

    @property
    def argument(self) -> str:
        """What vLLM is told."""
        return str(self.directory) if self.directory else self.name

    def failure(self, cause: str) -> str:
        """That it could not be loaded, in one line."""
        if self.directory:
            return f"model {self.name}: {cause}"
        return (
            f"model {self.name}: there is no such directory, and from the model hub it could not "
            f"be had: {cause.rstrip('.')}. To serve a model from disk, give its directory's path"
        )


def find_model(model: str) -> ModelPlace:
    """The place of a shipped name, a directory, or an id on the hub; checks a directory's files."""
    directory = shipped(model) or Path(model).expanduser()
    if directory.is_dir():
        _check_model(model, directory)
        return ModelPlace(model, directory.resolve())
    if shipped(model) or model.startswith(("/", ".", "~")) or not _HUB_ID.fullmatch(model):
        raise CannotLoad(f"model {model}: there is no directory {directory}; check the path")
    return ModelPlace(model, None)


def longest_context(place: ModelPlace) -> int:
    """Tokens that the model's config allows; 0 where it does not say or is not here."""
    if place.directory is None:
        return 0
    longest = read_json(place.directory / "config.json", place.name).get(
        "max_position_embeddings", 0
    )
    return longest if isinstance(longest, int) else 0


def writes_text(place: ModelPlace) -> bool:
    """Whether the model's config says that it writes text and reads nothing else. A setting may
    have it embed all the same."""
    if place.directory is None:
        return False
    kinds = read_json(place.directory / "config.json", place.name).get("architectures")
    return isinstance(kinds, list) and any(str(kind).endswith(_WRITERS) for kind in kinds)


def weight_files(directory: Path) -> list[Path]:
    """The files that hold a model's weights, of one format, by name."""
    for pattern in _WEIGHTS:
        if files := sorted(directory.glob(pattern)):
            return files
    return []


def check_version(found: str, *, untested: bool) -> None:
    """Refuses a vLLM whose inside nobody has looked at, unless the deployment says it may be."""
    if not found.startswith(TESTED_VLLM) and not untested:
        raise CannotLoad(
            f"vLLM {found} is installed, this replica was tested with {TESTED_VLLM}x and reaches "
            f"into it; install {TESTED_VLLM}x, or set the engine setting untested_vllm=true"
        )


def check_device(*, found: bool) -> None:
    """Refuses to go on where vLLM knows no device, which only its CUDA build comes to."""
    if not found:
        raise CannotLoad(
            "vLLM's CUDA build is installed and finds no GPU that it can use; see whether "
            "`nvidia-smi` lists one and says CUDA 13 or later, and that CUDA_VISIBLE_DEVICES does "
            "not hide it, or take the CPU build: PENSTOCK_VLLM_BUILD=cpu make serve"
        )


def fitting_threads(place: ModelPlace) -> int:
    """OpenMP threads that fit the model; 0: as many as there are cores.

    A small model's steps are so short that threads only wait for each other: on a busy machine two
    make it thirty times slower than one.
    """
    if place.directory is None:
        return 0
    return 1 if _weight_bytes(place.directory) < _SMALL_BYTES else 0


def free_memory(group: Path = Path("/sys/fs/cgroup"), machine: Path = _MEMINFO) -> int:
    """Bytes that this machine, or the container around us, can still give; -1: nobody says."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", _text(machine), re.MULTILINE)
    free = int(found[1]) << 10 if found else -1
    limit, used = _text(group / "memory.max").strip(), _text(group / "memory.current").strip()
    if not limit.isdigit() or not used.isdigit():
        return free
    cache = re.search(r"^file (\d+)$", _text(group / "memory.stat"), re.MULTILINE)
    left = max(0, int(limit) - int(used) + (int(cache[1]) if cache else 0))
    return min(free, left) if free >= 0 else left


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _check_model(model: str, directory: Path) -> None:
    config = read_json(directory / "config.json", f"model {model}")
    if not config.get("architectures"):
        raise CannotLoad(f"model {model}: {directory}/config.json names no architectures")
    if not weight_files(directory):
        raise CannotLoad(f"model {model}: {directory} holds no weights (*.safetensors)")
    if not any((directory / name).exists() for name in _TOKENIZERS):
        raise CannotLoad(
            f"model {model}: {directory} holds no tokenizer (tokenizer.json or tokenizer.model); "
            "save the tokenizer beside the weights"
        )


def _weight_bytes(directory: Path) -> int:
    return sum(file.stat().st_size for file in weight_files(directory))


def read_json(path: Path, who: str) -> dict[str, Any]:
    """A file that holds a JSON object; `who` is what the error is about."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST_JSON:
            raise ValueError(f"it is no file of at most {_LARGEST_JSON >> 20} MiB")
        parsed = json.loads(path.read_text())
    except FileNotFoundError:
        raise CannotLoad(f"{who}: {path.parent} holds no {path.name}; check the path") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CannotLoad(f"{who}: {path} cannot be read: {error}") from None
    if not isinstance(parsed, dict):
        raise CannotLoad(f"{who}: {path} is no JSON object")
    return parsed
