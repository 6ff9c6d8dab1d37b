"""How a deployment goes from one revision to the next, and what becomes of one that fails."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from penstock.control.declared.fields import Form, check, chosen, inner, setting
from penstock.control.errors import InvalidSpec
from penstock.control.state.canary.spec import NAMES, is_name
from penstock.control.state.rollout.revision import MOST_KEPT

MOST_AT_ONCE = 1000  # replicas
LONGEST_MS = 86_400_000


class OnFailure(StrEnum):
    """What becomes of a revision that does not get on."""

    ROLLBACK = "rollback"  # the last that served takes its place
    PAUSE = "pause"  # the last that served goes on, until somebody says what is to be


def on_failure(name: str) -> OnFailure:
    """What is named. Raises InvalidSpec."""
    return chosen(OnFailure, "update.on_failure", name, InvalidSpec)


@dataclass(frozen=True, slots=True)
class Update:
    """Raises InvalidSpec where nothing could ever change."""

    max_surge: int = setting(
        "{unit} beyond those wanted, while they take each other's place",
        1,
        ge=0,
        le=MOST_AT_ONCE,
        unit="replicas",
    )
    max_unavailable: int = setting(
        "{unit} fewer than wanted that may serve, where no accelerator is free for one more",
        0,
        ge=0,
        le=MOST_AT_ONCE,
        unit="replicas",
    )
    min_ready_ms: int = setting(
        "{unit} that a new replica is to be ready before it takes another's place",
        10_000,
        ge=0,
        le=LONGEST_MS,
        unit="milliseconds",
    )
    ready_deadline_ms: int = setting(
        "{unit} from start to ready, after which the revision has failed; 0: as a replica has",
        0,
        ge=0,
        le=LONGEST_MS,
        unit="milliseconds",
    )
    on_failure: OnFailure = setting(
        "of a revision that crashes, is refused, or is not ready in time, where another served",
        OnFailure.ROLLBACK,
        form=Form(str, on_failure),
        choices=tuple(OnFailure),
    )
    canary: str = setting(
        "name of the canary that judges each new revision by a share of the clients before it takes"
        " the place of the one before; made with the usual steps where there is none; empty: none",
        "",
        examples=("chat-revisions",),
    )

    def __post_init__(self) -> None:
        check(self, InvalidSpec, within="update.")
        if self.canary and not is_name(self.canary):
            raise InvalidSpec(f"update.canary is {self.canary!r}: {NAMES}")
        if not self.max_surge and not self.max_unavailable:
            raise InvalidSpec(
                "update.max_surge and update.max_unavailable are 0: no replica could ever take"
                " another's place; set one of them"
            )


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """How a deployment changes, and what is kept of what it was."""

    update: Update = inner(Update, prefix="update.")
    revision_limit: int = setting(
        "{unit} that are kept to go back to, the present one among them",
        10,
        ge=1,
        le=MOST_KEPT,
        unit="revisions",
    )

    def __post_init__(self) -> None:
        check(self, InvalidSpec)
