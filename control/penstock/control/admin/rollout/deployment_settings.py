"""The settings of a deployment that take no new replicas, as the admin API takes them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from penstock.control.admin.fields import Count, Dollars, Share, Text
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.routing.degrading import (
    MOST_RUNGS,
    REASONS,
    Context,
    Degrading,
    degrading,
    said_of,
)
from penstock.control.state.routing.limits import (
    WHOLE,
    Canary,
    Limits,
    SelectionPolicy,
    Sharing,
    selection_policy,
)
from penstock.control.state.tenancy.prices import Prices
from penstock.control.state.tenancy.spend import MOST_TOKENS, Budgets

DEFAULTS = Limits()
MAX_CANARIES = 100
Rungs = Annotated[list[Text], Field(max_length=MOST_RUNGS)]


class CanaryModel(BaseModel):
    """A share of the requests that goes to another deployment."""

    model_config = ConfigDict(extra="forbid")

    deployment: Text = Field(
        description="its name; left out while there is none", examples=["mini-next"]
    )
    permille: Annotated[StrictInt, Field(ge=0, le=WHOLE)] = Field(
        description="share of the requests, in thousandths", examples=[50]
    )


class SettingsModel(BaseModel):
    """What gateways hold a deployment to; a change takes no new replicas."""

    model_config = ConfigDict(extra="forbid")

    max_ongoing: Count = Field(
        DEFAULTS.max_ongoing, description="calls sent to one replica at a time; 0: its capacity"
    )
    max_queued: Count = Field(
        DEFAULTS.max_queued, description="requests waiting in one gateway; 0: nobody waits"
    )
    queue_deadline_ms: Count = Field(
        DEFAULTS.queue_deadline_ms,
        description="milliseconds a request may wait for a replica; 0: no limit",
    )
    first_event_deadline_ms: Count = Field(
        DEFAULTS.first_event_deadline_ms,
        description="milliseconds from send to the first event; 0: no limit",
    )
    wait_budget_ms: Count = Field(
        DEFAULTS.wait_budget_ms,
        description="estimated wait in milliseconds above which a request is refused; 0: none",
    )
    kv_pressure: Share = Field(
        DEFAULTS.kv_pressure,
        description="share of KV in use above which a replica is sent nothing new; 0: no limit",
    )
    max_prompt_tokens: Count = Field(
        DEFAULTS.max_prompt_tokens, description="tokens of a prompt; 0: the model's"
    )
    max_completion_tokens: Count = Field(
        DEFAULTS.max_completion_tokens, description="tokens of each choice; 0: the model's"
    )
    max_n: Count = Field(DEFAULTS.max_n, description="choices of one request; 0: no limit")
    progress_deadline_ms: Count = Field(
        DEFAULTS.progress_deadline_ms,
        description="a replica that has work and makes no tokens for so many milliseconds is sent"
        " nothing more; 0: never",
    )
    selection_policy: Text = Field(
        SelectionPolicy.POWER_OF_TWO.value,
        description="which replica a request goes to",
        json_schema_extra={"enum": [str(policy) for policy in SelectionPolicy]},
    )
    canary: list[CanaryModel] = Field(
        default_factory=list,
        max_length=MAX_CANARIES,
        description="shares of the requests that go to other deployments; 1000 permille at most",
    )
    degrade: Rungs | dict[Text, Rungs] = Field(
        default_factory=list,
        description="what is tried, in this order, for a request that it cannot answer: trim,"
        " fallback:<deployment>, reject; or such a list by reason, with default for the others:"
        f" {', '.join(REASONS)}",
        examples=[["fallback:cloud", "fallback:sorry"], {"default": ["fallback:cloud"]}],
    )
    context: Text = Field(
        Context.REJECT.value,
        description="what becomes of a prompt beyond the model's context: refused, or without its"
        " oldest turns",
        json_schema_extra={"enum": [str(each) for each in Context]},
    )
    budget_usd_per_day: Dollars = Field(
        0.0,
        description="US dollars from midnight to midnight UTC, at all gateways together, after"
        " which it takes no more requests until midnight; 0: no budget",
    )
    budget_tokens_per_day: Annotated[StrictInt, Field(ge=0, le=MOST_TOKENS)] = Field(
        0, description="likewise, of prompts and answers together; 0: no budget"
    )

    usd_per_million_input: Dollars = Field(
        0.0,
        description="US dollars that a million tokens of prompts cost; 0: nothing, or with a"
        " provider as its engine_args say",
    )
    usd_per_million_output: Dollars = Field(0.0, description="likewise, of answers")
    usd_per_million_cached: Dollars | None = Field(
        None,
        description="likewise, of prompts that were in the prefix cache; null: as of others",
        examples=[0.025],
    )

    def limits(self) -> Limits:
        """The numbers; raises InvalidSpec."""
        return Limits(**{name: getattr(self, name) for name in asdict(DEFAULTS)})

    def sharing(self) -> Sharing:
        """How requests are shared out; raises InvalidSpec."""
        canary = tuple(Canary(each.deployment, each.permille) for each in self.canary)
        return Sharing(selection_policy(self.selection_policy), canary)

    def degrading(self) -> Degrading:
        """What is tried in place of an answer; raises InvalidSpec."""
        return degrading(self.degrade, self.context)

    def budgets(self) -> Budgets:
        """What it may cost; raises InvalidSpec."""
        return Budgets(self.budget_usd_per_day, self.budget_tokens_per_day)

    def prices(self) -> Prices:
        """What tokens cost; raises InvalidSpec."""
        return Prices(
            self.usd_per_million_input, self.usd_per_million_output, self.usd_per_million_cached
        )

    def applied_to(self, spec: DeploymentSpec) -> DeploymentSpec:
        """The spec with all of these settings; raises InvalidSpec."""
        return replace(
            spec,
            limits=self.limits(),
            sharing=self.sharing(),
            degrading=self.degrading(),
            budgets=self.budgets(),
            prices=self.prices(),
        )

    def named(self) -> dict[str, object]:
        """Those that the caller named."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    @classmethod
    def of_spec(cls, spec: DeploymentSpec) -> SettingsModel:
        """Those of a spec."""
        canary = [
            CanaryModel(deployment=each.deployment, permille=each.permille)
            for each in spec.sharing.canary
        ]
        return SettingsModel(
            **asdict(spec.limits),
            selection_policy=spec.sharing.policy.value,
            canary=canary,
            degrade=said_of(spec.degrading),
            context=spec.degrading.context.value,
            budget_usd_per_day=spec.budgets.usd_per_day,
            budget_tokens_per_day=spec.budgets.tokens_per_day,
            **asdict(spec.prices),
        )
