"""Whatever happens to machines, messages, clocks and stores: what must never be, and what comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.state.canary.canary import Canary, CanaryState, ended
from penstock.control.state.fleet.replica import NodeId
from penstock.control.state.rollout.deployment import (
    Deployment,
    DeploymentSpec,
    paused,
    restarted,
    resumed,
)
from penstock.control.state.rollout.revision import NOBODY
from penstock.control.state.rollout.template import Sleep
from tests.control.cluster_laws import Laws
from tests.fakes.control_values import MINI, spec
from tests.fakes.simulated_cluster import SimulatedCluster
from tests.fakes.simulated_machines import BROKEN, FLAKY


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to the cluster, and how many seconds pass before the next."""

    what: str
    number: int
    model: str
    seconds: int


Happening = Callable[[SimulatedCluster, Event], None]


def _crash(cluster: SimulatedCluster, event: Event) -> None:
    running = sorted(i for agent in cluster.agents.values() for i in agent.processes)
    if running:
        replica_id = running[event.number % len(running)]
        agent = cluster.holder(replica_id)
        assert agent
        agent.crash(replica_id)


def _agent(cluster: SimulatedCluster, event: Event) -> NodeId:
    return sorted(cluster.agents)[event.number % len(cluster.agents)]


def _silence(cluster: SimulatedCluster, event: Event) -> None:
    cluster.agents[_agent(cluster, event)].silent = 4 * event.seconds


def _lose_all(cluster: SimulatedCluster, event: Event) -> None:
    cluster.agents[_agent(cluster, event)].processes.clear()


def _lose_machine(cluster: SimulatedCluster, event: Event) -> None:
    cluster.agents[_agent(cluster, event)].die(8 * event.seconds)


def _lose_orders(cluster: SimulatedCluster, event: Event) -> None:
    cluster.agents[_agent(cluster, event)].loses = event.number


def _lose_answers(cluster: SimulatedCluster, event: Event) -> None:
    cluster.agents[_agent(cluster, event)].mute = event.number


def _silence_gateway(cluster: SimulatedCluster, event: Event) -> None:
    cluster.gateways["g0"].silent = event.seconds


def _slow_gateway(cluster: SimulatedCluster, event: Event) -> None:
    cluster.gateways["g1"].lag = event.number


def _be_late(cluster: SimulatedCluster, event: Event) -> None:
    cluster.late.add(_agent(cluster, event))


def _cut_off(cluster: SimulatedCluster, event: Event) -> None:
    cluster.cut_off = 3 * event.seconds


def _put_anew(cluster: SimulatedCluster, event: Event) -> None:
    cluster.delete(MINI)
    cluster.put(spec(replicas=event.number % 5, model=event.model))


def _step_clock(cluster: SimulatedCluster, event: Event) -> None:
    cluster.step_clock(timedelta(minutes=(-1) ** event.number * 10))


def _restart_on_another_clock(cluster: SimulatedCluster, event: Event) -> None:
    _step_clock(cluster, event)
    cluster.restart_head()


def _change(make: Callable[[Deployment, datetime], Deployment]) -> Happening:
    def happen(cluster: SimulatedCluster, event: Event) -> None:
        if cluster.view.deployments and not cluster.view.held:
            cluster.change(make)

    return happen


def asleep(spec: DeploymentSpec) -> DeploymentSpec:
    """The same, of which those that are not wanted for now sleep."""
    template = replace(spec.template, engine="simulated", sleep=Sleep.WEIGHTS_IN_MEMORY)
    return replace(spec, template=template)


def judged(spec: DeploymentSpec) -> DeploymentSpec:
    """The same, of which each change is judged by a canary."""
    update = replace(spec.rollout.update, canary="mini-revisions")
    return replace(spec, rollout=replace(spec.rollout, update=update))


def at_step(canary: Canary, number: int) -> Canary:
    """The canary at one of its steps."""
    return replace(canary, step=1 + number % len(canary.spec.steps))


def rolled_back(canary: Canary, now: datetime) -> Canary:
    """The canary once it has found its revision worse."""
    return ended(canary, CanaryState.ROLLED_BACK, "worse", now)


HAPPENINGS: dict[str, Happening] = {
    "put": lambda c, e: c.put(spec(replicas=e.number % 5, model=e.model)),
    "pause": _change(paused),
    "resume": _change(resumed),
    "make replicas anew": _change(lambda known, now: restarted(known, now, NOBODY)),
    "put one that is judged": lambda c, e: c.put(
        judged(spec(replicas=e.number % 5, model=e.model))
    ),
    "a canary is at a step": lambda c, e: c.move_canary(lambda it, _: at_step(it, e.number)),
    "a canary lets on": lambda c, e: c.move_canary(lambda it, _: replace(it, promoting=True)),
    "a canary rolls back": lambda c, e: c.move_canary(rolled_back),
    "put one that sleeps": lambda c, e: c.put(asleep(spec(replicas=e.number % 5, model=e.model))),
    "delete": lambda c, e: c.delete(MINI),
    "delete and put": _put_anew,
    "crash": _crash,
    "silence a node": _silence,
    "silence a gateway": _silence_gateway,
    "slow a gateway": _slow_gateway,
    "a late heartbeat": _be_late,
    "a node loses its replicas": _lose_all,
    "a machine is off for a while": _lose_machine,
    "lose orders": _lose_orders,
    "lose answers": _lose_answers,
    "cut the head off": _cut_off,
    "restart the head": lambda c, e: c.restart_head(),
    "step the clock": _step_clock,
    "restart the head on another clock": _restart_on_another_clock,
    "nothing": lambda c, e: None,
}
# What takes capacity away by itself.
BREAKS = {"crash", "a node loses its replicas", "a machine is off for a while"}
EVENTS = st.builds(
    Event,
    what=st.sampled_from(sorted(HAPPENINGS)),
    number=st.integers(0, 9),
    model=st.sampled_from(["a", "b", BROKEN, FLAKY]),
    seconds=st.integers(0, 12),
)


@settings(max_examples=60)
@given(history=st.lists(EVENTS, max_size=14), wanted=st.integers(0, 4))
def test_whatever_happened_nothing_forbidden_is_done_and_the_spec_is_reached(
    history: list[Event], wanted: int
) -> None:
    with SimulatedCluster(nodes=3, gateways=2) as cluster:
        laws = Laws(cluster)
        laws.run(1)
        for event in history:
            HAPPENINGS[event.what](cluster, event)
            if event.what in BREAKS:
                laws.broken()
            laws.run(event.seconds)
        all_is_well(cluster)
        cluster.put(spec(replicas=wanted, model="last"))
        cluster.change(resumed)
        cluster.settle(400)
        assert cluster.ready_models() == ["last"] * wanted
        assert cluster.running() == wanted
        assert all(len(cluster.served_by(g)) == wanted for g in cluster.gateways.values())


def all_is_well(cluster: SimulatedCluster) -> None:
    """Everything is reached again, at once."""
    for agent in cluster.agents.values():
        agent.silent = agent.dead = agent.loses = agent.mute = 0
    for gateway in cluster.gateways.values():
        gateway.silent = gateway.lag = 0
    cluster.cut_off = 0
