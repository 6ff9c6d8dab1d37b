"""Specs that are refused, and the revisions that changes make."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.deployment import (
    AdapterBinding,
    DeploymentName,
    DeploymentSpec,
    Limits,
    Template,
    changed,
    created,
)
from tests.fakes.control_values import NOON, SECOND, spec

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
        (Template(engine="vllm", model="m", max_ongoing=-1), "max_ongoing is -1"),
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


@pytest.mark.parametrize("replicas", [-1, 1001])
def test_a_count_of_replicas_out_of_range_is_refused(replicas: int) -> None:
    with pytest.raises(InvalidSpec, match=f"replicas is {replicas}"):
        spec(replicas=replicas)


def test_the_same_spec_again_makes_no_revision() -> None:
    deployment = created(spec(), NOON)
    assert changed(deployment, spec(), NOON + SECOND) is deployment


def test_a_scaling_keeps_the_replicas_revision() -> None:
    deployment = changed(created(spec(), NOON), spec(replicas=2), NOON + SECOND)
    assert (deployment.revision, deployment.template_revision) == (2, 1)
    deployment = changed(deployment, replace(spec(), limits=Limits(max_queued=1)), NOON)
    assert (deployment.revision, deployment.template_revision) == (3, 1)


def test_another_model_takes_new_replicas_and_forgets_old_trouble() -> None:
    troubled = replace(created(spec(), NOON), trouble="no such model")
    deployment = changed(troubled, spec(model="other"), NOON)
    assert (deployment.revision, deployment.template_revision) == (2, 2)
    assert deployment.trouble == ""
