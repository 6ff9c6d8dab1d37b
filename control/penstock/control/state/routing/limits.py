"""What gateways hold a deployment to, and how they share its requests out.

Changing any of it starts no replica: none of it is part of a template.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum

from penstock.control.errors import InvalidSpec

WHOLE = 1000  # permille


class SelectionPolicy(StrEnum):
    """How a gateway chooses among the replicas that may take a request."""

    ROUND_ROBIN = "round_robin"
    LEAST_LOADED = "least_loaded"
    POWER_OF_TWO = "power_of_two"  # the less loaded of two that chance names
    PREFIX_AWARE = "prefix_aware"  # where the prompt's beginning was computed before
    SESSION = "session"  # where the same session went before


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers that gateways admit and send by. Raises InvalidSpec for one out of its range."""

    max_ongoing: int = 0  # calls sent to one replica at a time; 0: its capacity
    max_queued: int = 100  # requests waiting in one gateway; 0: nobody waits
    queue_deadline_ms: int = 30_000  # milliseconds a request may wait for a replica; 0: no limit
    first_event_deadline_ms: int = 0  # milliseconds from send to the first event; 0: no limit
    wait_budget_ms: int = 0  # estimated wait above which a request is refused; 0: none
    kv_pressure: float = 0.93  # share of KV above which a replica gets nothing new; 0: no limit
    max_prompt_tokens: int = 0  # 0: the model's
    max_completion_tokens: int = 0  # of each choice; 0: the model's
    max_n: int = 16  # choices of one request; 0: no limit
    # A replica that has work and makes no tokens for so long gets nothing new; 0: never.
    progress_deadline_ms: int = 60_000

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not value >= 0:
                raise InvalidSpec(f"{each.name} is {value}: it must be 0 or more")
        if self.kv_pressure > 1 or not math.isfinite(self.kv_pressure):
            raise InvalidSpec(f"kv_pressure is {self.kv_pressure}: it must be a share, 0 to 1")


@dataclass(frozen=True, slots=True)
class Canary:
    """Another deployment that a share of the requests goes to."""

    deployment: str
    permille: int  # of the requests


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which replica a request goes to, and which of them go elsewhere. Raises InvalidSpec.

    A canary may name a deployment that is not there yet: routes leave it out until it is.
    """

    policy: SelectionPolicy = SelectionPolicy.POWER_OF_TWO
    canary: tuple[Canary, ...] = ()

    def __post_init__(self) -> None:
        names = [each.deployment for each in self.canary]
        for each in self.canary:
            if not 0 <= each.permille <= WHOLE:
                raise InvalidSpec(
                    f"canary {each.deployment!r} has permille {each.permille}: it must be 0 to"
                    f" {WHOLE}"
                )
            if names.count(each.deployment) > 1:
                raise InvalidSpec(f"canary names {each.deployment!r} twice: keep one")
        if (total := sum(each.permille for each in self.canary)) > WHOLE:
            raise InvalidSpec(f"the shares of canary are {total} permille: {WHOLE} at most")


def selection_policy(name: str) -> SelectionPolicy:
    """The policy of this name. Raises InvalidSpec."""
    try:
        return SelectionPolicy(name)
    except ValueError:
        raise InvalidSpec(
            f"selection_policy is {name!r}: it must be one of {', '.join(SelectionPolicy)}"
        ) from None
