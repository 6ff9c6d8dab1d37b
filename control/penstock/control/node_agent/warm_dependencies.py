"""What a warm pool takes of the outside world, as Protocols, and what of ours it may see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Protocol

from penstock.control.node_agent.warm_policy import PATIENCE, Patience
from penstock.control.supervision.clock import Clock
from penstock.control.supervision.process import Process

# What of the agent's environment a zygote gets: nothing that could be a secret. The rest comes
# with the claim, to the member alone.
PASSED_ON = (
    *("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "PENSTOCK_LOG_LEVEL"),
    # Read as the hub's client is imported; of the names of secrets, and none.
    *("HF_TOKEN_PATH", "HF_HUB_DISABLE_IMPLICIT_TOKEN"),
)
PASSED_ON_PREFIXES = (
    *("LC_", "LD_", "PYTHON", "XDG_", "HF_", "VLLM_", "TORCH", "TRITON_"),
    *("OMP_", "MKL_", "KMP_", "MALLOC_", "CUDA_", "NVIDIA_"),
    *("TRANSFORMERS_", "PYTORCH_", "NCCL_", "GLOO_"),
)
SECRETS = ("TOKEN", "KEY", "SECRET", "PASSWORD")


class StartOrder(NamedTuple):
    """A process that is to be: what a cold start would be given."""

    engine: str
    argv: Sequence[str]
    env: Mapping[str, str]  # added to ours
    log_path: Path


class Member(Protocol):
    """A process that waits. What it is asked raises `LaunchFailed` where it does not answer."""

    @property
    def process(self) -> Process:
        """The process itself; what it exits with is known while its zygote lives."""

    async def fits(self, argv: Sequence[str], *, within: timedelta) -> str:
        """Why it cannot be a process of this command line; empty: it can."""

    async def become(self, order: StartOrder, *, within: timedelta) -> None:
        """Makes it that process."""


class Imported(NamedTuple):
    """A zygote is ready to fork."""

    ms: int


class Forked(NamedTuple):
    """A member waits."""

    member: Member


class Ended(NamedTuple):
    """A child of the zygote has ended."""

    pid: int


class Gone(NamedTuple):
    """The zygote has ended, and with it those that waited."""

    why: str


Told = Imported | Forked | Ended | Gone


class Zygote(Protocol):
    """What forks members."""

    def want(self, members: int) -> None:
        """So many are to wait."""

    def retire(self) -> None:
        """Ends those that wait, and itself once all have ended that were claimed: until then it
        knows their exit codes. It tells nothing from now on."""

    async def end(self) -> None:
        """Ends it and those that wait; it tells nothing from now on."""


class NodeReplicas(Protocol):
    """What runs on the node."""

    def start_waits(self, by: datetime) -> bool:
        """Whether a replica starts, or is to be started by then."""

    def engines(self) -> frozenset[str]:
        """Of its replicas."""


@dataclass(frozen=True, slots=True)
class PoolDependencies:
    """What a pool works with."""

    engine: str  # of the replicas that it is for
    # Raises `LaunchFailed`.
    start_zygote: Callable[[Callable[[Told], None]], Zygote]
    installed_code: Callable[[], str]  # tells it from what was installed before; in a thread
    memory_available: Callable[[], int]  # bytes
    clock: Clock
    patience: Patience = PATIENCE


def zygote_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """What of an environment a zygote gets."""
    return {
        name: value
        for name, value in ours.items()
        if name in PASSED_ON
        or (
            name.startswith(PASSED_ON_PREFIXES)
            and not any(word in name.upper() for word in SECRETS)
        )
    }
