"""What a declared field is outside of its dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from penstock.control.declared.fields import (
    PAIRS,
    check,
    flat,
    grouped,
    inner,
    leaves,
    nested,
    said,
    setting,
)
from penstock.control.errors import InvalidInput, InvalidSpec
from penstock.control.state.canary.spec import CanarySpec
from penstock.control.state.recording.spec import RecordingSpec
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.shadow.spec import ShadowSpec
from penstock.control.state.tenancy.tenants import ApiKey, TenantSpec


@dataclass(frozen=True, slots=True)
class End:
    """When it ends."""

    pairs: int = setting("that count", 0, ge=0, le=9)


@dataclass(frozen=True, slots=True)
class Budget:
    """What it may cost."""

    usd: float = setting("{unit}, in full", 0.5, unit="dollars", name="budget_usd", ge=0)


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec with all there is."""

    name: str = field(metadata=said("what it is called"))
    labels: tuple[tuple[str, str], ...] = setting("for people", (), form=PAIRS)
    budget: Budget = inner(Budget)
    end: End = inner(End, prefix="end_")


SPEC = Spec("a", (("k", "v"),), Budget(2.0), End(3))
FLAT = {"name": "a", "labels": {"k": "v"}, "budget_usd": 2.0, "end_pairs": 3}


def test_a_value_is_flat_outside_and_nested_again_within() -> None:
    assert flat(SPEC) == FLAT
    assert nested(Spec, FLAT | {"unknown": 1}) == {
        "name": "a",
        "labels": (("k", "v"),),
        "budget": {"usd": 2.0},
        "end": {"pairs": 3},
    }


def test_a_field_has_its_name_default_and_text_from_its_declaration() -> None:
    name, _, budget, _ = leaves(Spec)
    assert (name.name, name.declared.text) == ("name", "what it is called")
    assert (budget.name, budget.path, budget.default) == ("budget_usd", ("budget", "usd"), 0.5)
    assert (budget.declared.description, budget.declared.role) == ("dollars, in full", "operator")


@pytest.mark.parametrize(
    "spec", [DeploymentSpec, TenantSpec, ApiKey, ShadowSpec, CanarySpec, RecordingSpec]
)
def test_a_field_whose_name_has_a_unit_is_declared_in_it(spec: type) -> None:
    units = {"ms": "milliseconds", "usd": "US dollars", "permille": "thousandths", "mib": "MiB"}
    for leaf in leaves(spec):
        named = [unit for word, unit in units.items() if word in leaf.name.split("_")]
        assert [leaf.declared.unit for _ in named] == named, leaf.name


def test_dots_in_names_are_objects_however_deep() -> None:
    said = {"name": "a", "guards.errors.ratio": 2, "guards.errors.margin": 1, "guards.first": 3}
    deep = {"name": "a", "guards": {"errors": {"ratio": 2, "margin": 1}, "first": 3}}
    assert grouped(said) == deep
    assert grouped({"labels": {"a.b": "c"}}) == {"labels": {"a.b": "c"}}


@pytest.mark.parametrize(
    "said", [{"a": 1, "a.b": 2}, {"a.b": 1, "a.b.c": 2}, {"a.b.c": 1, "a.b": 2}]
)
def test_what_is_given_whole_and_in_parts_is_refused(said: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="a is given whole, and in parts"):
        grouped(said)


@pytest.mark.parametrize("pairs", [-1, 10])
def test_a_number_beyond_its_bounds_is_refused_with_its_name_and_value(pairs: int) -> None:
    with pytest.raises(InvalidSpec, match=rf"end\.pairs is {pairs}: it must be 0 to 9"):
        check(End(pairs), InvalidSpec, within="end.")


@pytest.mark.parametrize("usd", [-0.1, float("nan"), float("inf")])
def test_what_has_no_upper_bound_is_a_number_all_the_same(usd: float) -> None:
    with pytest.raises(InvalidInput, match=f"budget_usd is {usd}: it must be 0 or more"):
        check(Budget(usd))
