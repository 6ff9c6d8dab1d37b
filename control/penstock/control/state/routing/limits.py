"""What gateways hold a deployment to, and how they share its requests out.

Changing any of it starts no replica: none of it is part of a template.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from penstock.control.declared.fields import Form, check, chosen, inner, said, setting
from penstock.control.errors import InvalidSpec
from penstock.control.state.routing.program_setting import PROGRAM, Program, Roles, Sees
from penstock.control.state.switch import Switch, switch

WHOLE = 1000  # permille
MAX_COUNT = 2**31 - 1
MAX_CANARIES = 100
# A client does not wait for longer, and a replica that leaves is kept so much longer for it.
LONGEST_RESUME_WAIT_MS = 600_000


class SelectionPolicy(StrEnum):
    """How a gateway chooses among the replicas that may take a request."""

    ROUND_ROBIN = "round_robin"
    LEAST_LOADED = "least_loaded"
    POWER_OF_TWO = "power_of_two"  # the less loaded of two that chance names
    PREFIX_AWARE = "prefix_aware"  # where the prompt's beginning was computed before
    SESSION = "session"  # where the same session went before
    PROGRAM = "program"  # where a router program says


class SessionAffinity(StrEnum):
    """What all requests of a session have alike."""

    NONE = "none"
    REVISION = "revision"  # the revision that answers them, while it serves


def _count(default: int, unit: str, text: str) -> Any:
    return setting(text, default, unit=unit, ge=0, le=MAX_COUNT)


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers that gateways admit and send by. Raises InvalidSpec for one out of its range."""

    max_ongoing: int = _count(0, "calls", "{unit} sent to one replica at a time; 0: its capacity")
    max_queued: int = _count(100, "requests", "{unit} waiting in one gateway; 0: nobody waits")
    queue_deadline_ms: int = _count(
        30_000, "milliseconds", "{unit} a request may wait for a replica; 0: no limit"
    )
    first_event_deadline_ms: int = _count(
        0, "milliseconds", "{unit} from send to the first event; 0: no limit"
    )
    wait_budget_ms: int = _count(
        0, "milliseconds", "estimated wait in {unit} above which a request is refused; 0: none"
    )
    kv_pressure: float = setting(
        "{unit} of KV in use above which a replica is sent nothing new; 0: no limit",
        0.93,
        unit="share",
        ge=0,
        le=1,
    )
    max_prompt_tokens: int = _count(0, "tokens", "{unit} of a prompt; 0: the model's")
    max_completion_tokens: int = _count(0, "tokens", "{unit} of each choice; 0: the model's")
    max_n: int = _count(16, "choices", "{unit} of one request; 0: no limit")
    progress_deadline_ms: int = _count(
        60_000,
        "milliseconds",
        "a replica that has work and makes no tokens for so many {unit} is sent"
        " nothing more; 0: never",
    )
    resume: Switch = setting(
        "whether an answer whose replica is lost goes on at another one, of the same tokens; a"
        " provider's never does",
        Switch.ON,
        form=switch("resume"),
    )
    resume_wait_ms: int = setting(
        "{unit} that such an answer waits for a replica that can go on with it; 0: it does not",
        10_000,
        unit="milliseconds",
        ge=0,
        le=LONGEST_RESUME_WAIT_MS,
    )

    def __post_init__(self) -> None:
        check(self, InvalidSpec)


@dataclass(frozen=True, slots=True)
class CanaryWeight:
    """Another deployment that a share of the requests goes to."""

    deployment: str = field(
        metadata=said("its name; left out while there is none", examples=("mini-next",))
    )
    permille: int = field(
        metadata=said(
            "share of the requests, in {unit}", unit="thousandths", ge=0, le=WHOLE, examples=(50,)
        )
    )


def selection_policy(name: str) -> SelectionPolicy:
    """The policy of this name. Raises InvalidSpec."""
    return chosen(SelectionPolicy, "selection_policy", name, InvalidSpec)


def session_affinity(name: str) -> SessionAffinity:
    """The affinity of this name. Raises InvalidSpec."""
    return chosen(SessionAffinity, "session_affinity", name, InvalidSpec)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which replica a request goes to, and which of them go elsewhere. Raises InvalidSpec.

    A canary may name a deployment that is not there yet: routes leave it out until it is.
    """

    policy: SelectionPolicy = setting(
        "which replica a request goes to",
        SelectionPolicy.POWER_OF_TWO,
        name="selection_policy",
        form=Form(str, selection_policy),
    )
    canary: tuple[CanaryWeight, ...] = setting(
        "shares of the requests that go to other deployments; 1000 permille at most",
        (),
        shape="NAME:PERMILLE,...",
        most=MAX_CANARIES,
    )
    session_affinity: SessionAffinity = setting(
        "whether a session stays at the revision that it began with, while that serves",
        SessionAffinity.NONE,
        form=Form(str, session_affinity),
    )
    program: Program | None = setting(
        "that is asked where selection_policy is program: one that ships, a file, or"
        " module:NAME; program.ARG sets what it takes",
        None,
        form=PROGRAM,
        shape="NAME or FILE.py",
        examples=({"file": "async def route(request, engines, stats):\n    return None\n"},),
    )
    sees: Sees = setting(
        "what the program is given of a prompt; tokens: its ids and text",
        Sees.LENGTHS,
        form=Form(str, lambda said: chosen(Sees, "sees", str(said), InvalidSpec)),
    )
    program_deadline_ms: int = setting(
        "{unit} of its own that the program has for a request, engine calls not counted",
        20,
        unit="milliseconds",
        ge=1,
        le=60_000,
    )
    transfer_deadline_ms: int = setting(
        "{unit} that each engine call of the program may take",
        10_000,
        unit="milliseconds",
        ge=1,
        le=3_600_000,
    )
    roles: Roles = inner(Roles, prefix="roles.")

    def __post_init__(self) -> None:
        check(self, InvalidSpec)
        if self.policy is SelectionPolicy.PROGRAM and self.program is None:
            raise InvalidSpec("selection_policy is program: say which, by program")
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

    def runs_another_program(self, before: Sharing) -> bool:
        """Whether a program is asked, or sees or takes, what it did not before."""
        anew = self.policy is SelectionPolicy.PROGRAM and self.policy is not before.policy
        other = (self.program, self.sees) != (before.program, before.sees)
        return self.program is not None and (anew or other)
