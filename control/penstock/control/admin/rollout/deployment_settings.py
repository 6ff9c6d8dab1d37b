"""The settings of a deployment that take no new replicas, as the admin API takes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from penstock.control.admin.derived import Derived, derived
from penstock.control.admin.fields import Text
from penstock.control.declared.codec import Codec
from penstock.control.declared.fields import flat
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.routing.degrading import MOST_RUNGS, Degrading, by_reason, said_of
from penstock.control.state.routing.limits import Canary, Limits, Sharing
from penstock.control.state.tenancy.prices import Prices
from penstock.control.state.tenancy.spend import Budgets

SPECS = Codec(DeploymentSpec)
SETTINGS = (Limits, Sharing, Degrading, Budgets, Prices)
Rungs = Annotated[list[Text], Field(max_length=MOST_RUNGS)]


@derived(Canary)
class CanaryModel(Derived):
    """A share of the requests that goes to another deployment."""


@derived(
    *SETTINGS,
    canary=list[CanaryModel],
    degrade=Rungs | dict[Text, Rungs],
)
class SettingsModel(Derived):
    """What gateways hold a deployment to; a change takes no new replicas."""

    def applied_to(self, spec: DeploymentSpec) -> DeploymentSpec:
        """The spec with all of these settings; raises InvalidSpec."""
        return SPECS.value(flat(spec) | self.said())

    def said(self) -> dict[str, Any]:
        """All of it, as documents have it; raises InvalidSpec."""
        return self.model_dump() | {"degrade": by_reason(self.degrade)}

    def named(self) -> dict[str, object]:
        """Those that the caller named."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    @classmethod
    def of_spec(cls, spec: DeploymentSpec) -> SettingsModel:
        """Those of a spec."""
        return SettingsModel.showing(spec, degrade=said_of(spec.degrading))
