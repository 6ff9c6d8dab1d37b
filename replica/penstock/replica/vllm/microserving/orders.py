"""What the scheduler's half tells the workers' halves with a step, and what goes with a request.
Values only; they are pickled between processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

SEND: Final = "penstock_send"
"""The key of `kv_transfer_params` under which a request says where its KV goes."""

LEASE: Final = "penstock_lease"
"""And under which it names the lease that ends as it is scheduled."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where KV goes. `ranks`: host and port of each; `begin`, `end`: blocks of the prompt, of which
    `first` is the first that is leased."""

    job: str
    lease: str
    nonce: bytes
    fingerprint: bytes
    ranks: tuple[tuple[str, int], ...]
    first: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class StepSend:
    """What of a request can be sent once this step is computed: blocks here, and their places in
    the lease. Also those that were found: another request of this same step may compute them.
    `last`: there will be no more."""

    request_id: str
    target: Target
    blocks: list[tuple[int, int]]
    last: bool


@dataclass(slots=True)
class StepOrders:
    """Of one step. `preempted`: requests whose blocks others may have now. `ended`: those that are
    done, whose blocks stay until nothing is sent of them; of these, `dropped` are not wanted."""

    sends: list[StepSend] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    begun: bool = False


def target_of(told: dict[str, Any]) -> Target:
    """As `target_told` has told it. Raises `KeyError`, `ValueError`, `TypeError`."""
    return Target(
        str(told["job"]),
        str(told["lease"]),
        bytes.fromhex(told["nonce"]),
        bytes.fromhex(told["fingerprint"]),
        tuple((str(host), int(port)) for host, port in told["ranks"]),
        int(told["first"]),
        int(told["begin"]),
        int(told["end"]),
    )
