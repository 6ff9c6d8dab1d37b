"""What a change will take, told before it is made: replicas, and whether there is room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.capacity import Capacity
from penstock.control.state.rollout.deployment import Deployment, changed
from penstock.control.state.rollout.effect import Effect, effect_of
from penstock.control.state.rollout.update import RolloutSettings, Update
from tests.control.state.rollout.test_capacity import holding, machine, wanting
from tests.fakes.control_values import MINI, NOON, in_service


def serving(replicas: int, *, update: Update | None = None) -> Deployment:
    """A deployment of vLLM that serves."""
    made = in_service(wanting(replicas))
    rollout = RolloutSettings(update or Update())
    return replace(made, spec=replace(made.spec, rollout=rollout))


def effect(old: Deployment | None, new: Deployment, *, devices: int, held: int = 0) -> Effect:
    """On one machine, of whose accelerators some are held by replicas of the old one."""
    view = ClusterView().with_deployment(new).with_node(machine("n1", devices))
    for number in range(held):
        assert old is not None
        one = holding(f"r{number}", "n1", f"n1-gpu{number}", digest=old.template_digest)
        view = view.with_replica(one)
    return effect_of(view, old, new, Capacity(view))


def of_another_model(old: Deployment) -> Deployment:
    """The next generation, of another template."""
    template = replace(old.spec.template, model="other")
    return changed(old, replace(old.spec, template=template), NOON)


def test_a_new_deployment_starts_its_replicas_where_they_find_room() -> None:
    new = wanting(2)
    assert effect(None, new, devices=2) == Effect(starts=2)
    told = effect(None, new, devices=1)
    assert (told.starts, told.fits) == (2, False)
    assert told.message == "no node has 1 free accelerator: 1 of 2 wait for room"


def test_another_template_replaces_what_runs_one_at_a_time() -> None:
    old = serving(2)
    assert effect(old, of_another_model(old), devices=3, held=2) == Effect(replaces=2, surge=1)


@pytest.mark.parametrize(
    ("unavailable", "words"),
    [(0, "the change waits; update.max_unavailable=1"), (1, "one is taken down before")],
)
def test_where_nothing_is_free_for_one_more_it_is_said_what_comes_of_it(
    unavailable: int, words: str
) -> None:
    old = serving(2, update=Update(max_unavailable=unavailable))
    told = effect(old, of_another_model(old), devices=2, held=2)
    assert (told.replaces, told.surge, told.fits) == (2, 1, False)
    assert words in told.message


def test_settings_and_fewer_replicas_start_nothing() -> None:
    old = serving(2)
    limits = replace(old.spec.limits, max_queued=3)
    new = changed(old, replace(old.spec, replicas=1, limits=limits), NOON)
    assert effect(old, new, devices=2, held=2) == Effect(stops=1)


def test_what_one_deployment_takes_another_does_not_find() -> None:
    view = ClusterView().with_node(machine("n1", 1))
    capacity = Capacity(view)
    first = wanting(1)
    second = replace(first, spec=replace(first.spec, name=MINI))
    told = [effect_of(view, None, each, capacity).fits for each in (first, second)]
    assert told == [True, False]
