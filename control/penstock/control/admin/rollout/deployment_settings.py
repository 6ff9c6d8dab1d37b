"""The settings of a deployment that take no new replicas, as the admin API takes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from penstock.control.admin.derived import Derived, derived
from penstock.control.admin.fields import Text
from penstock.control.declared.codec import Codec
from penstock.control.declared.fields import flat, grouped
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.rollout.update import RolloutSettings, Update
from penstock.control.state.routing.degrading import MOST_RUNGS, Degrading, by_reason
from penstock.control.state.routing.limits import Canary, Limits, Sharing
from penstock.control.state.tenancy.prices import Prices
from penstock.control.state.tenancy.spend import Budgets

SPECS = Codec(DeploymentSpec)
SETTINGS = (Limits, Sharing, Degrading, Budgets, Prices, RolloutSettings)
Rungs = Annotated[list[Text], Field(max_length=MOST_RUNGS)]


@derived(Canary)
class CanaryModel(Derived):
    """A share of the requests that goes to another deployment."""


@derived(Update)
class UpdateModel(Derived):
    """How new replicas take the place of old ones, and what becomes of a change that fails."""


@derived(
    *SETTINGS,
    canary=list[CanaryModel],
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
        if "update" in named:
            named["update"] = known["update"] | named["update"]
        return SPECS.value(known | named)

    def said(self) -> dict[str, Any]:
        """All of it, as documents have it; raises InvalidSpec."""
        return self.model_dump() | {"degrade": by_reason(self.degrade)}
