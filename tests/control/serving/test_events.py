"""Lines that tell what happened between two looks."""

from __future__ import annotations

import pytest

from penstock.control.serving.events import Picture, happened
from tests.control.serving.pictures import gateway, node, replica


def lines(before: Picture, now: Picture) -> list[str]:
    return list(happened(before, now))


def test_nothing_new_is_worth_no_line() -> None:
    picture = Picture([replica()], [node()], [gateway()])
    assert lines(picture, picture) == []


def test_more_requests_are_no_event() -> None:
    assert lines(Picture(gateways=[gateway()]), Picture(gateways=[gateway(requests=9)])) == []


def test_a_replica_that_ended_and_one_that_came_back_are_told() -> None:
    ready = Picture([replica()])
    down = Picture([replica(state="backoff", restarts=1, last_error="was killed by SIGKILL")])
    back = Picture([replica(state="ready", restarts=1)])
    assert lines(ready, down) == ["replica r-1 ended (was killed by SIGKILL): starts again"]
    assert lines(down, back) == ["replica r-1 is ready"]


def test_a_restart_between_two_looks_is_not_missed() -> None:
    after = Picture([replica(restarts=1, last_error="its engine died")])
    assert lines(Picture([replica()]), after) == [
        "replica r-1 ended (its engine died): starts again"
    ]


@pytest.mark.parametrize("state", ["failed", "lost"])
def test_a_replica_that_is_gone_is_told_with_the_reason(state: str) -> None:
    after = Picture([replica(state=state, last_error="no memory")])
    assert lines(Picture([replica()]), after) == [f"replica r-1 {state}: no memory"]


def test_a_restarted_gateway_is_told() -> None:
    after = Picture(gateways=[gateway(restarts=1, last_error="ended with exit code -9")])
    assert lines(Picture(gateways=[gateway()]), after) == [
        "gateway gw-1 ended with exit code -9: started again"
    ]


def test_a_silent_node_is_told() -> None:
    after = Picture(nodes=[node(state="silent")])
    assert lines(Picture(nodes=[node()]), after) == ["node n is silent"]
