from __future__ import annotations

from penstock.evals.penstock_system import MODEL, pids_of

MODELS = [{"id": MODEL}]
GATEWAYS = [{"id": "gw-1", "pid": 7}]
REPLICAS = [{"state": "starting", "pid": 8}, {"state": "ready", "pid": 9}]


def test_the_gateway_and_the_ready_replica_are_watched() -> None:
    assert pids_of(MODELS, GATEWAYS, REPLICAS) == {"front": 7, "behind": 9}


def test_all_replicas_are_waited_for() -> None:
    assert pids_of(MODELS, GATEWAYS, REPLICAS, wanted=2) is None
    both = [*REPLICAS, {"state": "ready", "pid": 10}]
    assert pids_of(MODELS, GATEWAYS, both, wanted=2) == {"front": 7, "behind": 9}


def test_nothing_is_watched_before_all_is_ready() -> None:
    assert pids_of([], GATEWAYS, REPLICAS) is None
    assert pids_of([{"id": "other"}], GATEWAYS, REPLICAS) is None
    assert pids_of(MODELS, [], REPLICAS) is None
    assert pids_of(MODELS, GATEWAYS, REPLICAS[:1]) is None
