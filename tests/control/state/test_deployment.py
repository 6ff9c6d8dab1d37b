"""Specs that are refused, and the generations that changes make."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.deployment import (
    AdapterBinding,
    DeploymentName,
    DeploymentSpec,
    Template,
    changed,
    created,
)
from penstock.control.state.limits import Canary, Limits, SelectionPolicy, Sharing
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
        (
            Template(engine="vllm", model="m", adapters=(AdapterBinding("p", "p", "s"),)),
            "name@version",
        ),
        (
            Template(engine="vllm", model="m", adapters=(AdapterBinding("p", "p@1", ""),)),
            "has no source",
        ),
        (
            Template(
                engine="vllm",
                model="m",
                adapters=(AdapterBinding("p", "p@1", "s"), AdapterBinding("p", "p@2", "s")),
            ),
            "stands twice",
        ),
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
    shared = replace(limited, sharing=Sharing(SelectionPolicy.SESSION, (Canary("next", 1),)))
    for generation, each in ((3, limited), (4, shared)):
        deployment = changed(deployment, each, NOON)
        assert (deployment.generation, deployment.template_generation) == (generation, 1)
        assert deployment.template_digest == digest


def test_a_canary_names_another_deployment() -> None:
    for name, words in (("mini", "itself"), ("No Name", "name is 'No Name'")):
        with pytest.raises(InvalidSpec, match=words):
            replace(spec(), sharing=Sharing(canary=(Canary(name, 1),)))


def test_another_model_takes_new_replicas_and_forgets_old_trouble() -> None:
    troubled = replace(created(spec(), NOON, uid=UID), trouble="no such model")
    deployment = changed(troubled, spec(model="other"), NOON)
    assert (deployment.generation, deployment.template_generation) == (2, 2)
    assert deployment.template_digest != troubled.template_digest
    assert deployment.trouble == ""
