"""What distinguishes this engine's answers from those of another: two short hashes.

`model_version` is of the weights and what belongs to them; `config_hash` of everything that decides
an answer (`config_hash.py`). Large weights are hashed by name, size and samples, for reading them
whole takes minutes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.replica.values import EngineFacts
from penstock.replica.vllm.start import environment
from penstock.replica.vllm.start.checks import ModelPlace, weight_files
from penstock.replica.vllm.start.config_hash import (
    LIBRARIES,
    beside_weights,
    config_hash,
    held_by,
    of_answers,
    of_device,
    of_environment,
)

if TYPE_CHECKING:
    from penstock.replica.vllm.start.launch import Launched

_SAMPLE: Final = 1 << 20
_LENGTH: Final = 16
_CPUINFO: Final = Path("/proc/cpuinfo")


def model_version(directory: Path) -> str:
    """A hash of the weights, the tokenizer and the template in `directory`."""
    digest = hashlib.sha256()
    for part in beside_weights(directory):
        digest.update(part)
    for path in weight_files(directory):
        digest.update(f"{path.name}:{path.stat().st_size}".encode())
        for part in _samples(path):
            digest.update(part)
    return digest.hexdigest()[:_LENGTH]


def of_engine(
    place: ModelPlace,
    launched: Launched,
    engine_args: Mapping[str, str],
    endpoints: tuple[str, ...],
) -> EngineFacts:
    """Of an engine that is up. Imports vLLM."""
    from vllm import __version__
    from vllm.platforms import current_platform

    model = launched.llm.vllm_config.model_config
    commit = getattr(model.hf_config, "_commit_hash", None)
    version = model_version(place.directory) if place.directory else str(commit)
    settings = {
        "penstock": metadata.version("penstock"),
        "vllm": __version__,
        "libraries": {name: _version(name) for name in LIBRARIES},
        "model": version,
        "name": "" if place.directory else place.name,  # a hub may not tell its commit
        "served_name": launched.args.served_model_name,  # it stands in the answers
        "dtype": model.dtype,
        "max_model_len": model.max_model_len,
        "engine_args": of_answers(engine_args),
        "runner": "v2" if launched.llm.vllm_config.use_v2_model_runner else "v1",  # draws otherwise
        "environment": of_environment(environment.as_it_is()),
        "chat_template": held_by(launched.args.chat_template or ""),
    }
    device = of_device(current_platform.get_device_name(), _cpuinfo(launched))
    return EngineFacts(
        backend="vllm",
        backend_version=__version__,
        model_version=version,
        max_model_len=model.max_model_len,
        max_running=launched.llm.vllm_config.scheduler_config.max_num_seqs,
        config_hash=config_hash(settings | {"device": device}),
        settings_hash=config_hash(settings),
        endpoints=endpoints,
        model=place.name,
    )


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


def _cpuinfo(launched: Launched) -> str:
    """Nothing where an accelerator computes."""
    return _CPUINFO.read_text() if launched.cpu and _CPUINFO.exists() else ""


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
