"""The settings of a deployment that take no new replicas, as the admin API takes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from penstock.control.admin.derived import Derived, Model, derived
from penstock.control.admin.fields import Text
from penstock.control.declared.codec import Codec
from penstock.control.declared.fields import flat, grouped
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.rollout.update import RolloutSettings, Update
from penstock.control.state.routing.degrading import MOST_RUNGS, Degrading, by_reason
from penstock.control.state.routing.limits import CanaryWeight, Limits, Sharing
from penstock.control.state.routing.program import MOST_BYTES
from penstock.control.state.routing.program_setting import Roles
from penstock.control.state.routing.slo import Objectives, Slo
from penstock.control.state.tenancy.prices import Prices
from penstock.control.state.tenancy.spend import Budgets

SPECS = Codec(DeploymentSpec)
GROUPS = frozenset({"update", "roles", "slo"})
"""Objects whose fields are settings of their own."""
Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]


def _one_error(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Says once what a value may be, not once for each kind."""
    try:
        return read(value)
    except ValidationError as error:
        raise ValueError("a number, a text, true or false, please") from error


Arg = Annotated[
    StrictBool | StrictInt | Finite | Text | None,
    WrapValidator(_one_error),
]
SETTINGS = (Limits, Sharing, Degrading, Budgets, Prices, Objectives, RolloutSettings)
Rungs = Annotated[list[Text], Field(max_length=MOST_RUNGS)]


@derived(CanaryWeight)
class CanaryModel(Derived):
    """A share of the requests that goes to another deployment."""


@derived(Update)
class UpdateModel(Derived):
    """How new replicas take the place of old ones, and what becomes of a change that fails."""


class ProgramModel(Model):
    """A router program: one of name, file and module."""

    model_config = ConfigDict(extra="forbid")

    name: Text = Field("", description="of one that ships", examples=["prefill_decode"])
    file: Annotated[StrictStr, Field(max_length=MOST_BYTES)] = Field(
        "", description="the text of one that does not; told where its deployment is shown alone"
    )
    module: Text = Field("", description="of Python, that nodes allow by --program-modules")
    digest: Text = Field("", description="of the file's text; alone: a text that is stored already")
    args: dict[Text, Arg] = Field(default_factory=dict, description="of its function, by name")


@derived(Roles)
class RolesModel(Derived):
    """How many replicas prefill, and how many generate; both 0: they have no roles."""


@derived(Slo)
class SloModel(Derived):
    """What its requests are to be; 0: nothing is asked."""


@derived(
    *SETTINGS,
    canary=list[CanaryModel],
    program=(ProgramModel | None, {"default": None}),
    roles=(
        Annotated[RolesModel, Field(description="of its replicas, for router programs")],
        RolesModel(),
    ),
    slo=(
        Annotated[SloModel, Field(description="objectives, of which burn rates are told")],
        SloModel(),
    ),
    update=(
        Annotated[UpdateModel, Field(description="how one revision takes another's place")],
        UpdateModel(),
    ),
    degrade=Rungs | dict[Text, Rungs],
)
class SettingsModel(Derived):
    """What gateways hold a deployment to; a change takes no new replicas."""

    def over(self, spec: DeploymentSpec) -> DeploymentSpec:
        """The spec with those settings that the caller named; raises InvalidSpec."""
        known, named = grouped(flat(spec)), self.model_dump(exclude_unset=True)
        if "degrade" in named:
            named["degrade"] = by_reason(self.degrade)
        for group in GROUPS & named.keys():
            named[group] = known[group] | named[group]
        if "program" in named:
            named["program"] = program_over(known["program"], named["program"])
        return SPECS.value(with_roles_of(known | named))

    def said(self) -> dict[str, Any]:
        """All of it, as documents have it; raises InvalidSpec."""
        return self.model_dump() | {"degrade": by_reason(self.degrade)}


def with_roles_of(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec as documents have it, with as many replicas as there are roles, if there are any."""
    roles = spec["roles"]
    total = roles.get("prefill", 0) + roles.get("decode", 0)
    return spec | {"replicas": total or spec["replicas"]}


def program_over(known: dict[str, Any] | None, said: dict[str, Any] | None) -> Any:
    """The program that is said; where arguments alone are, the same with these beside its own."""
    if not said or set(said) != {"args"}:
        return said
    before = known or {}
    return before | {"args": before.get("args", {}) | said["args"]}
