"""When a pool is filled, given up and left alone: values alone, no process, no clock."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from penstock.control.errors import Code
from penstock.control.node_agent.warm_dependencies import zygote_environment
from penstock.control.node_agent.warm_policy import (
    LEAST_MEMORY,
    PATIENCE,
    TRANSITIONS,
    PoolState,
    Stage,
    Step,
    Surroundings,
    plan,
    wanted_members,
)
from tests.fakes.control_errors import raises_code

EMPTY = PoolState(wanted=1, least_memory=LEAST_MEMORY)
QUIET = Surroundings()
IMPORTING = EMPTY.moved(Stage.IMPORTING, 100.0)
IDLE = IMPORTING.moved(Stage.IDLE, 111.0)
FORKING = IDLE.moved(Stage.FORKING, 111.0)
FULL = replace(QUIET, waiting=1)
NOW = 200.0


@pytest.mark.parametrize(
    ("pool", "around", "step"),
    [
        (EMPTY, QUIET, Step.START),
        (IDLE, QUIET, Step.FORK),
        (IDLE, FULL, Step.WAIT),
        (FORKING, QUIET, Step.GIVE_UP),  # for 89 seconds
        (replace(FORKING, since=NOW), QUIET, Step.WAIT),
        (IMPORTING, QUIET, Step.WAIT),
        (replace(IMPORTING, since=-1e4), QUIET, Step.GIVE_UP),
        (replace(IMPORTING, since=-1e4), replace(QUIET, start_waits=True), Step.GIVE_UP),
        (EMPTY, replace(QUIET, start_waits=True), Step.WAIT),
        (IDLE, replace(QUIET, start_waits=True), Step.WAIT),
        (EMPTY, replace(QUIET, quiet_from=NOW + 1), Step.WAIT),
        (EMPTY, replace(QUIET, foreign=True), Step.WAIT),
        (EMPTY, replace(QUIET, memory_available=LEAST_MEMORY - 1), Step.WAIT),
        (replace(EMPTY, rest_until=NOW + 1, why="it ended"), QUIET, Step.WAIT),
        (replace(EMPTY, rest_until=NOW), QUIET, Step.START),
    ],
)
def test_what_is_done(pool: PoolState, around: Surroundings, step: Step) -> None:
    planned = plan(pool, around, NOW, PATIENCE)
    assert planned.step is step
    # Whoever asks why nothing waits is told.
    is_full = around.waiting >= pool.wanted
    assert bool(planned.reason) is (step in (Step.WAIT, Step.GIVE_UP) and not is_full)
    assert planned.look_again is None or planned.look_again > NOW


def test_a_pool_that_was_asked_for_is_tried_whatever_there_is() -> None:
    asked = replace(EMPTY, least_memory=0)
    poor = Surroundings(foreign=True, memory_available=0)
    assert plan(asked, poor, NOW, PATIENCE).step is Step.START


def test_a_zygote_takes_no_step_that_the_table_lacks() -> None:
    assert set(TRANSITIONS) == set(Stage)
    with raises_code(Code.IMPOSSIBLE_TRANSITION, match="from none to idle"):
        EMPTY.moved(Stage.IDLE, NOW)


def test_zygotes_that_end_are_started_again_after_pauses_that_grow() -> None:
    pauses, pool = [], EMPTY
    for _ in range(12):
        pool = pool.moved(Stage.IMPORTING, NOW).lost(NOW, "it ended", PATIENCE)
        assert pool.stage is Stage.NONE
        pauses.append(pool.rest_until - NOW)
    assert pauses[0] == 1
    assert all(later >= earlier for earlier, later in pairwise(pauses))
    assert pauses[-1] == 600
    assert "rests: it ended" in plan(pool, QUIET, NOW, PATIENCE).reason
    old = replace(pool, stage=Stage.IDLE, since=NOW - 61)
    assert old.lost(NOW, "killed", PATIENCE).rest_until == NOW + 1  # it was a good one


def test_claims_that_fail_in_a_row_make_the_pool_rest_ever_longer() -> None:
    pauses, pool = [], IDLE
    for _ in range(3):
        for _ in range(PATIENCE.claims_in_a_row - 1):
            pool = pool.claim_failed(NOW, "it died", PATIENCE)
            assert pool.stage is Stage.IDLE
        pool = pool.claim_failed(NOW, "it died", PATIENCE)
        assert pool.stage is Stage.NONE
        pauses.append(pool.rest_until - NOW)
        pool = pool.moved(Stage.IMPORTING, NOW).moved(Stage.IDLE, NOW)
    assert pauses == [60, 120, 240]
    assert pool.why == "3 claims in a row came to nothing, the last: it died"
    again = pool.claim_worked()
    for _ in range(PATIENCE.claims_in_a_row):
        again = again.claim_failed(NOW, "it died", PATIENCE)
    assert again.rest_until == NOW + 60


def test_a_claim_that_worked_clears_those_before_it() -> None:
    pool = IDLE.claim_failed(NOW, "x", PATIENCE).claim_failed(NOW, "x", PATIENCE).claim_worked()
    assert pool.claim_failed(NOW, "x", PATIENCE).stage is Stage.IDLE


@pytest.mark.parametrize(
    ("asked", "build", "members", "words"),
    [
        (None, "cpu", 1, ""),
        (None, "", 0, "vLLM is not installed"),
        (None, "other", 0, "--warm 1 turns it on"),
        (3, "other", 3, ""),
        (2, "", 2, ""),
        (0, "cpu", 0, "--warm 0"),
    ],
)
def test_how_many_are_to_wait(asked: int | None, build: str, members: int, words: str) -> None:
    wanted, why = wanted_members(asked, build)
    assert wanted == members
    assert words in why
    assert bool(why) is (members == 0)


def test_a_zygote_gets_what_its_engine_imports_by_and_no_secret() -> None:
    passed = {
        "PATH": "/bin", "LC_ALL": "C", "PYTHONPATH": "/x", "HF_HOME": "/hf",
        "VLLM_CPU_KVCACHE": "4", "CUDA_VISIBLE_DEVICES": "0", "PENSTOCK_LOG_LEVEL": "debug",
        "HF_TOKEN_PATH": "/token", "TRANSFORMERS_OFFLINE": "1",
    }  # fmt: skip
    secrets = {
        "HF_TOKEN": "x", "VLLM_API_KEY": "x", "AWS_SECRET_ACCESS_KEY": "x", "OPENAI_API_KEY": "x",
        "PENSTOCK_CALLERS_TOKEN": "x", "hf_token": "x", "MLFLOW_TRACKING_PASSWORD": "x",
        "OTHER": "x",
    }  # fmt: skip
    assert zygote_environment(passed | secrets) == passed
