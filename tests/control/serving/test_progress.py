"""What is said while a model loads, and when hope is given up."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.control.admin.rollout.models import ReplicaModel
from penstock.control.serving.progress import (
    ENOUGH_FAILURES,
    SHORT_ENOUGH,
    failure,
    loading_phase,
    newest_step,
)
from tests.control.serving.pictures import NOW, replica


@pytest.mark.parametrize(
    ("replicas", "phase"),
    [
        ([], "waiting for the node agent"),
        ([replica(state="pending", address="")], "starting"),
        ([replica(state="starting", address="")], "starting"),
        ([replica(state="starting")], "loading the model"),
        ([replica(state="backoff")], "starting again"),
        ([replica("a"), replica("b", state="starting")], "1 of 2 replicas ready"),
    ],
)
def test_a_phase_has_words(replicas: list[ReplicaModel], phase: str) -> None:
    assert loading_phase(replicas) == phase


def test_a_replica_that_was_given_up_is_a_failure() -> None:
    lost = replica("b", state="failed", last_error="no such model")
    assert failure([replica("a"), lost], NOW) is lost


def test_a_failure_of_an_earlier_run_does_not_count() -> None:
    assert failure([replica(state="failed")], NOW + timedelta(seconds=1)) is None


def test_a_few_crashes_are_a_failure_and_one_is_not() -> None:
    assert failure([replica(state="backoff", restarts=1)], NOW) is None
    assert failure([replica(state="backoff", restarts=ENOUGH_FAILURES)], NOW) is not None


def test_a_ready_replica_that_had_crashed_is_no_failure() -> None:
    assert failure([replica(restarts=50)], NOW) is None


OWN = '{"logger": "penstock.replica.main", "message": "loading weights"}'


@pytest.mark.parametrize(
    "after",
    [
        '{"logger": "vllm.platforms", "message": "Triton is not installed", "level": "WARNING"}',
        "INFO 11-21 Using CPU backend",
        '{"logger": "penstock.replica.main", "no": "message"}',
        "[1, 2]",
        '{"message": "no logger"}',
    ],
)
def test_only_what_the_replica_itself_logged_is_a_step(after: str) -> None:
    assert newest_step(["earlier", OWN, after]) == "loading weights"
    assert newest_step([after]) == ""


def test_a_long_step_is_cut() -> None:
    assert len(newest_step([OWN.replace("weights", "x" * 1000)])) == SHORT_ENOUGH
    assert newest_step([]) == ""
