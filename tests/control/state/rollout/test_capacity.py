"""Where replicas find room: accelerators, memory, and what a node allows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Device, Node, NodeId, Replica, Resources
from penstock.control.state.rollout.actions import Drain, Place
from penstock.control.state.rollout.capacity import Capacity, devices_needed
from penstock.control.state.rollout.deployment import Deployment, created
from penstock.control.state.rollout.reconcile import plan
from penstock.control.state.rollout.status import status_of
from penstock.control.state.rollout.template import Template
from penstock.control.state.rollout.update import RolloutSettings, Update
from tests.fakes.control_values import DEADLINES, MINI, NOON, UID, node, replica, spec

GIB = 1 << 30


def machine(name: str, devices: int, *, used: int = 0, code: bool = False) -> Node:
    """A node with so many accelerators of 16 GiB."""
    found = tuple(
        Device(f"{name}-gpu{n}", memory_bytes=16 * GIB, memory_used_bytes=used)
        for n in range(devices)
    )
    facts = replace(
        node(name).facts, resources=Resources(gpus=devices, devices=found), allows_model_code=code
    )
    return replace(node(name), facts=facts)


def wanting(replicas: int = 1, engine: str = "vllm", **engine_args: str) -> Deployment:
    args = tuple(sorted(engine_args.items()))
    template = Template(engine=engine, model="m", engine_args=args)
    return created(replace(spec(replicas=replicas), template=template), NOON, uid=UID)


def placements(deployment: Deployment, *nodes: Node) -> list[tuple[str, tuple[str, ...]]]:
    view = ClusterView().with_deployment(deployment)
    for one in nodes:
        view = view.with_node(one)
    made = plan(view, NOON, DEADLINES)
    return [(a.node, a.devices) for a in made if isinstance(a, Place)]


def holding(name: str, node_id: str, *devices: str, digest: str) -> Replica:
    made = replica(name, node_id=node_id, digest=digest)
    return replace(made, devices=devices)


@pytest.mark.parametrize(
    ("engine", "args", "devices"),
    [
        ("vllm", {}, 1),
        ("vllm", {"tensor_parallel_size": "4"}, 4),
        ("vllm", {"tensor-parallel-size": "2", "pipeline_parallel_size": "3"}, 6),
        ("vllm", {"tensor_parallel_size": "many"}, 1),
        ("simulated", {"tensor_parallel_size": "4"}, 0),
        ("openai", {}, 0),
    ],
)
def test_a_replica_spans_as_many_devices_as_its_engine_is_told(
    engine: str, args: dict[str, str], devices: int
) -> None:
    template = Template(engine=engine, model="m", engine_args=tuple(args.items()))
    assert devices_needed(template) == devices


def test_each_replica_gets_devices_of_its_own() -> None:
    found = placements(wanting(3), machine("a", 2), machine("b", 1))
    assert sorted(found) == [("a", ("a-gpu0",)), ("a", ("a-gpu1",)), ("b", ("b-gpu0",))]


def test_a_wide_replica_goes_where_enough_devices_are_free_on_one_node() -> None:
    wide = wanting(2, tensor_parallel_size="2")
    assert placements(wide, machine("a", 1), machine("b", 3)) == [("b", ("b-gpu0", "b-gpu1"))]


def test_a_device_whose_memory_somebody_else_uses_is_not_free() -> None:
    assert placements(wanting(), machine("a", 1, used=8 * GIB)) == []
    modest = wanting(gpu_memory_utilization="0.4")
    assert placements(modest, machine("a", 1, used=8 * GIB)) == [("a", ("a-gpu0",))]


def test_nodes_without_accelerators_serve_where_no_node_has_any() -> None:
    assert placements(wanting(), machine("a", 0)) == [("a", ())]
    assert placements(wanting(), machine("a", 0), machine("b", 1)) == [("b", ("b-gpu0",))]
    assert placements(wanting(engine="simulated"), machine("a", 0)) == [("a", ())]


def test_code_of_a_model_runs_only_on_nodes_that_allow_it() -> None:
    trusting = wanting(trust_remote_code="true")
    assert placements(trusting, machine("a", 0)) == []
    assert placements(trusting, machine("a", 0), machine("b", 0, code=True)) == [("b", ())]
    assert placements(wanting(trust_remote_code="false"), machine("a", 0)) == [("a", ())]
    view = ClusterView().with_deployment(trusting).with_node(machine("a", 0))
    assert "--allow-model-code" in status_of(view, trusting).message


def test_an_update_takes_no_second_one_down_while_the_first_ones_memory_is_not_free() -> None:
    deployment = wanting(2)
    view = ClusterView().with_deployment(deployment).with_node(machine("a", 2, used=8 * GIB))
    view = view.with_replica(holding("r1", "a", "a-gpu1", digest="old"))
    assert plan(view, NOON, DEADLINES) == []


def test_an_update_takes_one_down_first_only_where_no_device_is_free_and_fewer_may_serve() -> None:
    deployment = wanting(2)
    view = ClusterView().with_deployment(deployment).with_node(machine("a", 2))
    for n in range(2):
        view = view.with_replica(holding(f"r{n}", "a", f"a-gpu{n}", digest="old"))
    assert plan(view, NOON, DEADLINES) == []
    one_fewer = RolloutSettings(Update(max_unavailable=1))
    allowed = replace(deployment, spec=replace(deployment.spec, rollout=one_fewer))
    (drain,) = plan(view.with_deployment(allowed), NOON, DEADLINES)
    assert isinstance(drain, Drain)
    assert "no other accelerator is free" in drain.reason
    roomy = view.with_node(machine("a", 3))
    assert plan(roomy, NOON, DEADLINES) == [Place(MINI, NodeId("a"), ("a-gpu2",))]
    away = view.with_node(replace(machine("a", 2), draining=True))
    assert plan(away, NOON, DEADLINES) == []


def test_what_is_missing_for_want_of_a_device_is_told() -> None:
    deployment = wanting(1, tensor_parallel_size="2")
    held = holding("other", "a", "a-gpu0", digest="x")
    view = ClusterView().with_deployment(deployment).with_node(machine("a", 2))
    view = view.with_replica(replace(held, deployment_uid="else"))
    assert (
        status_of(view, deployment).message == "waiting for room: no node has 2 free accelerators"
    )


def test_what_a_plan_places_it_takes() -> None:
    capacity = Capacity(ClusterView().with_node(machine("a", 1)))
    found = capacity.find(wanting())
    assert found == ("a", ("a-gpu0",))
    capacity.take(*found)
    assert capacity.find(wanting()) is None
    assert capacity.is_full(wanting())


def test_an_accelerator_that_is_lost_is_given_to_nobody() -> None:
    here = machine("a", 2)
    lost, sound = here.facts.resources.devices
    devices = (replace(lost, lost=True), sound)
    here = replace(here, facts=replace(here.facts, resources=Resources(devices=devices)))
    assert placements(wanting(), here) == [("a", ("a-gpu1",))]
    assert placements(wanting(tensor_parallel_size="2"), here) == []


def test_a_change_that_waits_for_an_accelerator_says_what_would_help() -> None:
    deployment = wanting(1)
    old = holding("r0", "a", "a-gpu0", digest="old")
    view = ClusterView().with_deployment(deployment).with_node(machine("a", 1)).with_replica(old)
    told = status_of(view, deployment).message
    assert told == (
        "revision 1 waits: no node has 1 free accelerator for one more replica;"
        " update.max_unavailable=1 lets one be taken down first"
    )
