"""What distinguishes this engine's answers from those of another: two short hashes.

`model_version` is of the weights and what belongs to them; `config_hash` of everything that decides
the tokens of an answer, so that equal hashes mean: a stream begun by one engine may be continued by
the other. Large weights are hashed by name, size and samples, for reading them whole takes minutes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from penstock.replica.vllm.start.checks import weight_files

_SAMPLE: Final = 1 << 20
_LENGTH: Final = 16
_BESIDE_WEIGHTS: Final = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
)


def model_version(directory: Path) -> str:
    """A hash of the weights, the tokenizer and the template in `directory`."""
    digest = hashlib.sha256()
    for name in _BESIDE_WEIGHTS:
        path = directory / name
        digest.update(f"{name}:{path.exists()}".encode())
        if path.exists():
            digest.update(path.read_bytes())
    for path in weight_files(directory):
        digest.update(f"{path.name}:{path.stat().st_size}".encode())
        for part in _samples(path):
            digest.update(part)
    return digest.hexdigest()[:_LENGTH]


def config_hash(parts: Mapping[str, object]) -> str:
    """A hash of named settings, whatever their order."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def _samples(path: Path) -> Iterable[bytes]:
    """The first and the last MiB and 14 between; a file of up to 16 MiB whole."""
    size = path.stat().st_size
    step = max(_SAMPLE, (size - _SAMPLE) // 15)
    with path.open("rb") as file:
        for position in range(0, size, step):
            file.seek(position)
            yield file.read(_SAMPLE)
        file.seek(max(0, size - _SAMPLE))
        yield file.read()
