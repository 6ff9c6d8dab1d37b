"""Histories of deployments whose replicas have roles: what gateways are told through an update."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from penstock.control.state.fleet.replica import ReplicaState
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.routing.limits import Sharing
from penstock.control.state.routing.program_setting import Roles
from penstock.control.state.routing.snapshot import routes_of
from tests.control.cluster_laws import Laws
from tests.fakes.control_values import spec
from tests.fakes.simulated_cluster import SimulatedCluster


def with_roles(prefill: int, decode: int, model: str = "a") -> DeploymentSpec:
    made = spec(replicas=prefill + decode, model=model)
    return replace(made, sharing=Sharing(roles=Roles(prefill, decode)))


def roles(cluster: SimulatedCluster) -> Counter[str]:
    """Of those that gateways send to, as the routes say that follow from the view."""
    told = routes_of(cluster.view).replicas
    return Counter(r.role for r in told if r.state is ReplicaState.READY)


def test_through_an_update_as_many_of_each_role_serve_as_are_wanted() -> None:
    with SimulatedCluster(nodes=2) as cluster:
        laws = Laws(cluster)
        laws.run(1)
        cluster.put(with_roles(1, 2))
        cluster.settle()
        assert roles(cluster) == {"prefill": 1, "decode": 2}
        cluster.put(with_roles(1, 2, model="better"))
        for _ in range(80):
            laws.run(1)
            now = roles(cluster)
            assert now["prefill"] >= 1, now
            assert now["decode"] >= 2, now
        assert cluster.ready_models() == ["better"] * 3
        assert roles(cluster) == {"prefill": 1, "decode": 2}


def test_other_roles_change_nothing_of_what_runs() -> None:
    with SimulatedCluster(nodes=2) as cluster:
        laws = Laws(cluster)
        laws.run(1)
        cluster.put(with_roles(1, 2))
        cluster.settle()
        before = {status.replica_id for status in cluster.ready()}
        cluster.put(with_roles(2, 1))
        laws.run(3)
        assert roles(cluster) == {"prefill": 2, "decode": 1}
        assert {status.replica_id for status in cluster.ready()} == before
        assert all(r.status.restarts == 0 for r in cluster.view.replicas.values())
