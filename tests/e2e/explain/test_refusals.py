"""Why a request was refused, in the words that its client and its gateway's log were told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.explained import Asked, Explained
from tests.e2e.system import eventually

Refuse = Callable[[Explained], Asked]


def queue_full(at: Explained) -> Asked:
    at.sets("narrow", max_queued=0)
    with at.busy():
        return at.ask("narrow")


def wait_exceeded(at: Explained) -> Asked:
    at.sets("narrow", max_queued=10, wait_budget_ms=1)
    assert at.ask("narrow").status == 200
    with at.busy():
        return at.ask("narrow")


def queue_deadline(at: Explained) -> Asked:
    at.sets("narrow", max_queued=10, wait_budget_ms=0, queue_deadline_ms=100)
    with at.busy():
        return at.ask("narrow")


def token_budget_exceeded(at: Explained) -> Asked:
    at.sets("narrow", max_completion_tokens=5)
    try:
        return at.ask("narrow", max_tokens=6)
    finally:
        at.sets("narrow", max_completion_tokens=0)


def memory_pressure(at: Explained) -> Asked:
    at.sets("narrow", kv_pressure=0.01)
    try:
        with at.busy():
            return until_refused(at, "narrow", "memory_pressure")
    finally:
        at.sets("narrow", kv_pressure=0.93)


def budget(at: Explained) -> Asked:
    assert at.ask("narrow").status == 200
    at.sets("narrow", budget_tokens_per_day=1)
    try:
        return until_refused(at, "narrow", "budget")
    finally:
        at.sets("narrow", budget_tokens_per_day=0)


def rate_limited(at: Explained) -> Asked:
    key = at.fleet.new_key(requests_per_minute=2)
    return next(a for a in (at.ask(key=key) for _ in range(10)) if a.status != 200)


def quota(at: Explained) -> Asked:
    key = at.fleet.new_key(tokens_per_day=1)
    return next(a for a in (at.ask(key=key) for _ in range(10)) if a.status != 200)


def scaled_to_zero(at: Explained) -> Asked:
    return at.ask("asleep")


def deployment_failed(at: Explained) -> Asked:
    return until_refused(at, "broken", "deployment_failed")


def gateway_full(at: Explained) -> Asked:
    port = at.fleet.ports[1]
    with at.busy("sim", port=port), at.busy("sim", port=port), at.busy("sim", port=port):
        return at.ask(port=port)


def until_refused(at: Explained, model: str, reason: str) -> Asked:
    """The first refusal for that reason."""

    def refused() -> Asked | None:
        asked = at.ask(model, max_tokens=1)
        return asked if asked.reason == reason else None

    found = eventually(refused, within=20, what=f"{reason} of {model}")
    assert found is not None
    return found


REFUSALS: tuple[Refuse, ...] = (
    *(queue_full, wait_exceeded, queue_deadline, token_budget_exceeded, memory_pressure, budget),
    *(rate_limited, quota, scaled_to_zero, deployment_failed, gateway_full),
)


@pytest.mark.parametrize("refuse", REFUSALS, ids=lambda refuse: refuse.__name__)
def test_one_that_was_refused_is_told_why(on_explained: Explained, refuse: Refuse) -> None:
    asked = refuse(on_explained)
    assert asked.reason == refuse.__name__
    told = on_explained.told(asked)
    assert told.record["outcome"] == "rejected"
    told.says("was refused with", f"it ends: rejected, {refuse.__name__}")


def test_one_that_came_while_no_replica_was_ready_says_so(on_explained: Explained) -> None:
    at = on_explained
    (victim,) = (r for r in at.system.replicas() if r["deployment"] == "narrow")
    at.system.kill(victim["pid"])

    def refused() -> Asked | None:
        asked = at.ask("narrow", max_tokens=1)
        if asked.reason not in ("no_ready_replica", "model_loading"):
            return None
        # The first that comes is sent there yet, and is told what that fails with.
        return None if at.told(asked).record["attempts"] else asked

    asked = eventually(refused, within=20, what="a refusal")
    assert asked is not None
    at.told(asked).says("narrow has 0 replicas ready", "it gets no place")
    eventually(lambda: at.ask("narrow").status == 200, within=30, what="narrow is back")
