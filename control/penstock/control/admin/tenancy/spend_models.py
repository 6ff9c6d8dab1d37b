"""What deployments cost, as the admin API tells it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime

from pydantic import Field

from penstock.control.admin.derived import Model, Shown
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.tenancy.spend import Spend, SpendRow


class SpentModel(Shown):
    """What was spent."""

    requests: int = Field(default=0, description="that went to a replica")
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = Field(default=0.0, description="US dollars, by its prices")

    @property
    def tokens(self) -> int:
        """What a budget counts."""
        return self.prompt_tokens + self.completion_tokens


class BudgetModel(Model):
    """Whether a deployment may go on today."""

    used_up: bool = Field(
        default=False, description="gateways send it nothing until it begins anew"
    )
    resets_at: datetime | None = Field(default=None, description="null: it has no budget")
    today: SpentModel = Field(
        default_factory=lambda: SpentModel(),
        description="since midnight UTC, where it has a budget or costs money",
    )

    @classmethod
    def of(cls, view: ClusterView, deployment: Deployment, today: Spend) -> BudgetModel:
        """How a deployment stands."""
        budgets, spending = deployment.spec.budgets, view.spending
        return cls(
            used_up=bool(budgets) and deployment.spec.name in spending.used_up,
            resets_at=_moment(spending.resets_at_ms) if budgets else None,
            today=SpentModel.drawn(today),
        )


class SpentDayModel(SpentModel):
    """What was spent on one day."""

    day: date = Field(description="of UTC")


class SpendModel(Shown):
    """What a deployment spent today and before, against its budgets."""

    deployment: str
    budget_usd_per_day: float = Field(description="0: none")
    budget_tokens_per_day: int = Field(description="0: none")
    used_up: bool = Field(description="gateways send it nothing until it begins anew")
    resets_at: datetime | None = Field(description="null: it has no budget")
    today: SpentDayModel
    days: list[SpentDayModel] = Field(
        description="today and the days before it on which it was asked for anything, newest first"
    )

    @classmethod
    def of(
        cls, view: ClusterView, deployment: Deployment, today: date, rows: Iterable[SpendRow]
    ) -> SpendModel:
        """As the API shows it."""
        spec = deployment.spec
        days = sorted(
            (SpentDayModel.drawn(row, row.spend) for row in rows), key=lambda d: d.day, reverse=True
        )
        this = next((each for each in days if each.day == today), SpentDayModel(day=today))
        budget = BudgetModel.of(view, deployment, Spend())
        return cls.drawn(
            budget,
            deployment=spec.name,
            budget_usd_per_day=spec.budgets.usd_per_day,
            budget_tokens_per_day=spec.budgets.tokens_per_day,
            today=this,
            days=days,
        )


def _moment(milliseconds: int) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
