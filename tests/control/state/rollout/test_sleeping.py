"""Replicas that sleep in place of ending: who may, who is woken, whose devices are whose."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Device, Node, Replica, ReplicaState, Resources
from penstock.control.state.rollout.actions import Action, Drain, Place, Wake
from penstock.control.state.rollout.deployment import Deployment, created
from penstock.control.state.rollout.reconcile import MOST_SLEEPERS, plan
from penstock.control.state.rollout.template import (
    Sleep,
    Template,
    check_template,
    template_digest,
)
from penstock.control.state.routing.snapshot import routes_of
from tests.fakes.control_values import DEADLINES, MINI, NOON, UID, node, replica, spec

MODEL = Template(engine="vllm", model="m", sleep=Sleep.WEIGHTS_IN_MEMORY)
ASLEEP = ReplicaState.ASLEEP


def wanting(replicas: int, template: Template = MODEL) -> Deployment:
    return created(replace(spec(replicas=replicas), template=template), NOON, uid=UID)


def machine(devices: int = 1, name: str = "n1") -> Node:
    """A node with accelerators gpu0, gpu1..."""
    found = tuple(Device(f"gpu{n}") for n in range(devices))
    facts = replace(node(name).facts, resources=Resources(gpus=devices, devices=found))
    return replace(node(name), facts=facts)


def there(name: str, state: ReplicaState, *devices: str, template: Template = MODEL) -> Replica:
    made = replica(name, state, digest=template_digest(template))
    return replace(made, devices=devices)


def planned(
    deployment: Deployment | None, *replicas: Replica, on: Node | None = None
) -> list[Action]:
    view = ClusterView().with_node(on or machine())
    if deployment is not None:
        view = view.with_deployment(deployment)
    for each in replicas:
        view = view.with_replica(each)
    return plan(view, NOON, DEADLINES)


def test_what_has_sleep_off_is_made_of_what_it_always_was() -> None:
    assert template_digest(Template("vllm", "m", sleep=Sleep.OFF)) == template_digest(
        Template("vllm", "m")
    )
    digest = "c7678f1e094144435a3b8a35b3805f379893f3eeada6799cd1787689f654ee53"
    assert template_digest(Template("vllm", "m")) == digest
    assert template_digest(MODEL) != digest


@pytest.mark.parametrize("engine", ["canned", "openai", "bedrock"])
def test_only_what_has_an_engine_can_sleep(engine: str) -> None:
    with pytest.raises(InvalidSpec, match=f"the engine {engine} cannot sleep"):
        check_template(Template(engine, "m", sleep=Sleep.WEIGHTS_IN_MEMORY))


def test_a_replica_that_serves_and_is_too_many_goes_to_sleep_and_one_that_loads_is_ended() -> None:
    serves, loads = there("r1", ReplicaState.READY), there("r2", ReplicaState.STARTING)
    drains = [a for a in planned(wanting(0), serves, loads) if isinstance(a, Drain)]
    assert {(d.replica_id, d.to_sleep) for d in drains} == {("r1", True), ("r2", False)}
    off = replace(MODEL, sleep=Sleep.OFF)
    (drain,) = planned(wanting(0, off), there("r1", ReplicaState.READY, template=off))
    assert isinstance(drain, Drain)
    assert not drain.to_sleep


def test_no_more_sleep_than_may() -> None:
    sleepers = [there(f"s{n}", ASLEEP) for n in range(MOST_SLEEPERS - 1)]
    serve = [there(f"r{n}", ReplicaState.READY) for n in range(3)]
    drains = [a for a in planned(wanting(0), *sleepers, *serve) if isinstance(a, Drain)]
    assert sorted(d.to_sleep for d in drains) == [False, False, True]


def test_one_that_sleeps_is_woken_before_anything_is_started() -> None:
    assert planned(wanting(1), there("r1", ASLEEP, "gpu0")) == [Wake("r1")]  # type: ignore[arg-type]
    two = planned(wanting(2), there("r1", ASLEEP, "gpu0"), on=machine(2))
    assert two == [Wake("r1"), Place(MINI, machine().id, ("gpu1",))]  # type: ignore[arg-type]


def test_the_devices_of_one_that_sleeps_are_given_to_others() -> None:
    other = replace(wanting(1), uid="u2", spec=replace(wanting(1).spec, name="other"))  # type: ignore[arg-type]
    sleeper = there("r1", ASLEEP, "gpu0")
    view = ClusterView().with_node(machine()).with_deployment(wanting(0)).with_deployment(other)
    made = plan(view.with_replica(sleeper), NOON, DEADLINES)
    assert [a.devices for a in made if isinstance(a, Place)] == [("gpu0",)]


@pytest.mark.parametrize(
    ("slept_s", "used_gib", "ended"), [(60, 4, ["r2"]), (1, 4, []), (60, 1, [])]
)
def test_the_one_that_slept_longest_is_ended_where_what_it_keeps_leaves_no_room(
    slept_s: int, used_gib: int, ended: list[str]
) -> None:
    full = Device("gpu0", memory_bytes=24 << 30, memory_used_bytes=used_gib << 30)
    on = replace(
        machine(), facts=replace(machine().facts, resources=Resources(gpus=1, devices=(full,)))
    )
    other = replace(wanting(1), uid="u2", spec=replace(wanting(1).spec, name="other"))  # type: ignore[arg-type]
    view = ClusterView().with_node(on).with_deployment(wanting(0)).with_deployment(other)
    for name, before in (("r1", slept_s), ("r2", 2 * slept_s)):
        sleeper = replace(there(name, ASLEEP, "gpu0"), since=NOON - timedelta(seconds=before))
        view = view.with_replica(sleeper)
    made = plan(view, NOON, DEADLINES)
    assert [a.replica_id for a in made if isinstance(a, Drain)] == ended
    assert bool([a for a in made if isinstance(a, Place)]) is (used_gib == 1)


@pytest.mark.parametrize(
    "state", [ReplicaState.READY, ReplicaState.PENDING, ReplicaState.DRAINING, ReplicaState.BACKOFF]
)
def test_one_is_not_woken_on_a_device_that_another_has(state: ReplicaState) -> None:
    other = replace(there("o1", state, "gpu0"), deployment_uid="u2")
    made = planned(wanting(1), there("r1", ASLEEP, "gpu0"), other, on=machine(2))
    assert [a for a in made if isinstance(a, Wake)] == []
    assert [a.devices for a in made if isinstance(a, Place)] == [("gpu1",)]


def test_two_that_sleep_on_one_device_are_not_both_woken() -> None:
    sleepers = there("r1", ASLEEP, "gpu0"), there("r2", ASLEEP, "gpu0")
    assert len([a for a in planned(wanting(2), *sleepers) if isinstance(a, Wake)]) == 1


@pytest.mark.parametrize(
    "now_made_of", [replace(MODEL, model="other"), replace(MODEL, sleep=Sleep.OFF)]
)
def test_one_of_another_template_is_ended(now_made_of: Template) -> None:
    made = planned(wanting(0, now_made_of), there("r1", ASLEEP, "gpu0"))
    assert made == [Drain(there("r1", ASLEEP).id, "asleep, and of an older template")]


def test_one_on_a_node_that_is_to_be_empty_is_ended() -> None:
    made = planned(wanting(0), there("r1", ASLEEP), on=replace(machine(), draining=True))
    assert [(a.replica_id, a.to_sleep) for a in made if isinstance(a, Drain)] == [("r1", False)]


def test_one_that_sleeps_is_in_no_route_and_one_that_was_woken_says_so() -> None:
    view = ClusterView().with_node(machine()).with_deployment(wanting(1))
    woken = there("r1", ReplicaState.READY)
    woken = replace(woken, status=replace(woken.status, wakes=3))
    routes = routes_of(view.with_replica(woken).with_replica(there("r2", ASLEEP)))
    assert [(r.id, r.wakes) for r in routes.replicas] == [("r1", 3)]
