"""Everything that vLLM, torch and the hub client take from the environment, set in one place.

They read it as they are imported, and the engine's processes inherit it, so `prepare` comes before
the first import of any of them. In the replica's process only this module writes `os.environ`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from penstock.replica.vllm.guards.limits import MAX_CHOICES
from penstock.replica.vllm.start import engine_process

_ALWAYS: Final = {
    # fork is not safe beside the gRPC threads of this process.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_MAX_N_SEQUENCES": str(MAX_CHOICES),
    # Nothing is reported to anybody.
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    # Adapters come from the deployment, never from a request.
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "0",
    # Those of vLLM's own code, in its processes.
    "PYTHONWARNINGS": "ignore::FutureWarning,ignore::UserWarning,ignore::DeprecationWarning",
    # Nothing of an answer is kept after it.
    "VLLM_ENABLE_RESPONSES_API_STORE": "0",
    # A media domain that is allowed cannot send the replica to another one.
    "VLLM_MEDIA_URL_ALLOW_REDIRECTS": "0",
    # Zero: none. It would count the wait for other calls' texts, and then answer later ones without
    # letting calls take turns.
    "VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT": "0",
    # The debug endpoints can stop the engine.
    "VLLM_SERVER_DEV_MODE": "0",
    # Of NIXL's transport: on stdout a replica says that it is ready.
    "UCX_LOG_FILE": "stderr",
}


def prepare(*, offline: bool, threads: int, log_config: Path) -> None:
    """Sets the environment. `offline`: the model is a directory, so the hub is never asked.

    `threads`: OpenMP threads of the engine's process; 0 leaves that to the machine. `log_config`:
    a file with a `logging.config` for vLLM in this process.
    """
    os.environ.update(_ALWAYS)
    # Asked of clients by vLLM's own server; here the gateway knows who they are.
    os.environ.pop("VLLM_API_KEY", None)
    os.environ["VLLM_LOGGING_LEVEL"] = log_level()
    os.environ["VLLM_LOGGING_CONFIG_PATH"] = str(log_config)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(_cache_directory() / "inductor"))
    if offline:
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ["TRANSFORMERS_OFFLINE"] = "1"
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)
    _tell_those_imported(offline=offline)


def _tell_those_imported(*, offline: bool) -> None:
    """In a fork they have read the environment long before."""
    modules: Mapping[str, Any] = sys.modules
    if offline and (hub := modules.get("huggingface_hub.constants")):
        hub.HF_HUB_OFFLINE = True
    if config := modules.get("vllm.config.logging"):
        # As an engine's start does later, which then finds it done.
        modules["vllm.logger"].configure_logging_if_needed(config.LoggingConfig())


def prepare_pool() -> None:
    """For a process that imports vLLM for engines of which nothing is known yet."""
    os.environ.update(_ALWAYS)
    os.environ["VLLM_LOGGING_LEVEL"] = log_level()


def threads() -> int:
    """OpenMP threads that a process of this environment begins with."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(first) if first.isdecimal() else len(os.sched_getaffinity(0))


def cpus() -> list[int]:
    """Those that vLLM binds the threads of a worker to; none: it does not."""
    words = os.environ.get("GOMP_CPU_AFFINITY", "").split()
    return [int(word) for word in words] if all(map(str.isdecimal, words)) else []


def preloaded(libraries: Sequence[Path]) -> str:
    """LD_PRELOAD with these libraries in front."""
    before = os.environ.get("LD_PRELOAD", "")
    return ":".join([*(str(one) for one in libraries if one.name not in before), before]).strip(":")


def log_level() -> str:
    """How much vLLM says: warnings, unless whoever starts the replica wants more."""
    return os.environ.get("VLLM_LOGGING_LEVEL", "WARNING")


def traces_endpoint() -> str:
    """Where spans of the engine go, as whoever started the replica says; empty: nowhere."""
    return os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")


def prepare_engine(*, log_config: Path, faults: Path) -> None:
    """For the engine's process alone, just before it is started.

    It is told who starts it, so that it ends if that process already has, and where to leave its
    last words: a `logging.config` and a file for the tracebacks of a fatal signal.
    """
    os.environ[engine_process.PARENT] = str(os.getpid())
    os.environ[engine_process.FAULTS] = str(faults)
    os.environ["VLLM_LOGGING_CONFIG_PATH"] = str(log_config)


def as_it_is() -> dict[str, str]:
    """All of it: for an engine's process that was forked before it was complete, and for what tells
    engines apart."""
    return dict(os.environ)


def never_compile() -> None:
    """Turns torch.compile off for the engine's process.

    For eager CPU engines: all that is left to compile there is a helper of the sampler, and doing
    so freezes the engine for some 13 s at the first request that asks for logprobs.
    """
    os.environ["TORCHDYNAMO_DISABLE"] = "1"


@contextlib.contextmanager
def root_logger_kept() -> Iterator[None]:
    """For importing vLLM's server: a library of its sets the root logger to ERROR."""
    root = logging.getLogger()
    loggers: list[logging.Logger | logging.Handler] = [root, *root.handlers]
    levels = [(one, one.level) for one in loggers]
    try:
        yield
    finally:
        for one, level in levels:
            one.setLevel(level)


def _cache_directory() -> Path:
    """Where compiled kernels survive a restart."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "penstock"
