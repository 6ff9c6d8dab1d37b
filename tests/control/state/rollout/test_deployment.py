"""Specs that are refused, and the generations that changes make."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.rollout.deployment import (
    DeploymentName,
    DeploymentSpec,
    changed,
    created,
)
from penstock.control.state.rollout.template import Template, template_digest
from penstock.control.state.routing.degrading import degrading
from penstock.control.state.routing.limits import CanaryWeight, Limits, SelectionPolicy, Sharing
from penstock.control.state.tenancy.spend import Budgets
from tests.fakes.control_values import NOON, SECOND, UID, spec

SIMULATED = Template(engine="simulated", model="m")


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a b", "a/b", "ä", "a" * 64, "a:b", "a\n"])
def test_a_name_that_is_no_dns_label_is_refused(name: str) -> None:
    with pytest.raises(InvalidSpec, match="name is"):
        DeploymentSpec(DeploymentName(name), SIMULATED)


@pytest.mark.parametrize("name", ["a", "penstock-mini", "llama-3.1-8b", "0"])
def test_a_name_like_a_model_is_taken(name: str) -> None:
    assert DeploymentSpec(DeploymentName(name), SIMULATED).name == name


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (Template(engine="magic", model="m"), "engine is 'magic'"),
        (Template(engine="vllm", model=" "), "model is ' '"),
        (Template(engine="vllm", model="a\ud800"), "model is"),
        (Template(engine="vllm", model="m", engine_args=(("--x", "1"),)), "without dashes"),
        (Template(engine="vllm", model="m", max_adapters=-1), "max_adapters is -1"),
        (Template(engine="vllm", model="m", max_adapters=513), "max_adapters is 513"),
        (Template(engine="vllm", model="m", max_adapter_rank=513), "max_adapter_rank is 513"),
        (Template(engine="openai", model="m", max_adapters=1), "openai takes no adapters"),
        (Template(engine="canned", model="m", max_adapter_rank=8), "canned takes no adapters"),
    ],
)
def test_a_template_that_cannot_run_is_refused(template: Template, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        DeploymentSpec(DeploymentName("mini"), template)


def test_a_start_limit_below_zero_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="start_limit_ms is -1"):
        replace(spec(), start_limit_ms=-1)


@pytest.mark.parametrize("replicas", [-1, 1001])
def test_a_count_of_replicas_out_of_range_is_refused(replicas: int) -> None:
    with pytest.raises(InvalidSpec, match=f"replicas is {replicas}"):
        spec(replicas=replicas)


def test_the_same_spec_again_makes_no_generation() -> None:
    deployment = created(spec(), NOON, uid=UID)
    assert changed(deployment, spec(), NOON + SECOND) is deployment


def test_a_scaling_keeps_the_replicas_template() -> None:
    deployment = changed(created(spec(), NOON, uid=UID), spec(replicas=2), NOON + SECOND)
    assert (deployment.generation, deployment.template_generation) == (2, 1)
    digest = deployment.template_digest
    limited = replace(spec(), limits=Limits(max_queued=1))
    shared = replace(limited, sharing=Sharing(SelectionPolicy.SESSION, (CanaryWeight("next", 1),)))
    degraded = replace(shared, degrading=degrading(["fallback:next"], "trim"))
    for generation, each in (
        (3, limited),
        (4, shared),
        (5, degraded),
        (6, replace(degraded, budgets=Budgets(1.5, 7))),
    ):
        deployment = changed(deployment, each, NOON)
        assert (deployment.generation, deployment.template_generation) == (generation, 1)
        assert deployment.template_digest == digest


def test_a_canary_names_another_deployment() -> None:
    for name, words in (("mini", "itself"), ("No Name", "name is 'No Name'")):
        with pytest.raises(InvalidSpec, match=words):
            replace(spec(), sharing=Sharing(canary=(CanaryWeight(name, 1),)))


def test_another_model_takes_new_replicas_and_forgets_old_trouble() -> None:
    troubled = replace(created(spec(), NOON, uid=UID), trouble="no such model")
    deployment = changed(troubled, spec(model="other"), NOON)
    assert (deployment.generation, deployment.template_generation) == (2, 2)
    assert deployment.template_digest != troubled.template_digest
    assert deployment.trouble == ""


def test_a_digest_is_that_of_heads_that_knew_fewer_fields() -> None:
    text = '{"adapters":[],"engine":"simulated","engine_args":[["ttft_ms","5"]],"model":"m"}'
    template = Template("simulated", "m", (("ttft_ms", "5"),))
    assert template_digest(template) == hashlib.sha256(text.encode()).hexdigest()


def test_a_digest_that_another_head_made_stays_until_the_template_changes() -> None:
    kept = replace(created(spec(), NOON, uid="u"), template_digest="an older head's")
    scaled = changed(kept, replace(spec(), replicas=5), NOON)
    assert (scaled.generation, scaled.template_digest) == (2, "an older head's")
    other = replace(spec(), template=replace(spec().template, max_adapters=2))
    assert changed(kept, other, NOON).template_digest == template_digest(other.template)


@pytest.mark.parametrize(
    ("settings", "slots", "rank"),
    [((0, 0), 0, 0), ((3, 0), 3, 16), ((0, 64), 4, 64), ((3, 64), 3, 64)],
)
def test_either_setting_makes_room_for_adapters(
    settings: tuple[int, int], slots: int, rank: int
) -> None:
    template = Template("vllm", "m", max_adapters=settings[0], max_adapter_rank=settings[1])
    assert (template.adapter_slots, template.adapter_rank) == (slots, rank)


def test_a_fallback_names_another_deployment() -> None:
    for name, words in (("mini", "itself"), ("No Name", "name is 'No Name'"), ("", "name is ''")):
        with pytest.raises(InvalidSpec, match=words):
            replace(spec(), degrading=degrading([f"fallback:{name}"], "reject"))


def test_what_loads_no_model_is_given_up_sooner_unless_the_spec_says_otherwise() -> None:
    canned = replace(spec(), template=Template("canned", "m", (("text", "no"),)))
    assert (spec().usual_start_limit_ms, canned.usual_start_limit_ms) == (0, 60_000)
    assert replace(canned, start_limit_ms=5).usual_start_limit_ms == 5
