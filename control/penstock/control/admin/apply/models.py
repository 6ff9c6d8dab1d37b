"""What the admin API takes and gives where documents are applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

from pydantic import ConfigDict, Field

from penstock.control.admin.derived import Model, Shown
from penstock.control.admin.fit_models import MemoryFitModel
from penstock.control.state.applying import Action, Plan
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.memory import MemoryFit
from penstock.control.state.rollout.capacity import Capacity
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.rollout.effect import Effect, effect_of

MOST_DOCUMENTS = 20_000
DEPLOYMENT = "deployment"


class DocumentsModel(Model):
    """What there is to be."""

    model_config = ConfigDict(extra="forbid")

    documents: list[dict[str, Any]] = Field(
        max_length=MOST_DOCUMENTS,
        description="each the body of its kind, beside `penstock: v1` and `kind`",
        examples=[[{"penstock": "v1", "kind": "deployment", "name": "chat", "replicas": 2}]],
    )


class FieldChangeModel(Shown):
    """One field that becomes another."""

    field: str
    before: Any = Field(description="null: not there")
    after: Any = Field(description="null: takes its default")


class OverwrittenModel(FieldChangeModel):
    """One that somebody else has set since."""

    by: str = Field(description="who, also `canary NAME`; empty: nobody knows")


class EffectModel(Shown):
    """What becomes of a deployment's replicas."""

    replaces: int = Field(description="replicas whose place new ones take")
    surge: int = Field(description="that run beside those meanwhile, at a time")
    starts: int = Field(description="replicas that are made besides")
    stops: int = Field(description="replicas that are no longer wanted")
    fits: bool = Field(description="the nodes have room for all that is begun at once")
    message: str = Field(description="why not, and what comes of it")


class StepModel(Shown):
    """What becomes of one object."""

    document: int = Field(description="its place among the documents; -1: none says it")
    kind: str
    name: str
    action: Action
    fields: list[FieldChangeModel]
    overwrites: list[OverwrittenModel] = Field(
        description="of these, what somebody else has set since: taken by force alone"
    )
    refused: str = Field(description="why it is done by force alone; empty: it is not")
    effect: EffectModel | None = Field(description="null: not of a deployment that changes")
    memory: MemoryFitModel | None = Field(
        None, description="of one of its replicas; null: they are made of what they were made of"
    )


class PlanModel(Shown):
    """What applying the documents changes."""

    set_name: str
    applied: bool = Field(description="false: a dry run")
    created: int
    changed: int
    deleted: int
    same: int
    steps: list[StepModel]

    @classmethod
    def of(
        cls,
        old: ClusterView,
        plan: Plan,
        fits: Mapping[str, MemoryFit],
        set_name: str,
        *,
        applied: bool,
    ) -> Self:
        """A plan over a view as the API shows it."""
        counts = Counter(step.action for step in plan.steps)
        effects = _effects(old, plan)
        return cls(
            set_name=set_name,
            applied=applied,
            created=counts[Action.CREATE],
            changed=counts[Action.CHANGE],
            deleted=counts[Action.DELETE],
            same=counts[Action.SAME],
            steps=[
                StepModel.drawn(step, effect=effects.get(step.name), memory=fits.get(step.name))
                if step.kind == DEPLOYMENT
                else StepModel.drawn(step, effect=None)
                for step in plan.steps
            ],
        )


def _effects(old: ClusterView, plan: Plan) -> Mapping[str, Effect]:
    """Of each deployment that is made or changed, by its name."""
    changed = [
        DeploymentName(step.name)
        for step in plan.steps
        if step.kind == DEPLOYMENT and step.action in (Action.CREATE, Action.CHANGE)
    ]
    if not changed:
        return {}
    capacity, new = Capacity(plan.view), plan.view
    return {
        name: effect_of(new, old.deployments.get(name), new.deployments[name], capacity)
        for name in changed
    }
