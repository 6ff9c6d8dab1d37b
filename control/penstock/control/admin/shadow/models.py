"""What the admin API takes and gives of shadows."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AwareDatetime, ConfigDict, Field, StrictInt, model_validator

from penstock.control.admin.derived import Derived, Model, derived
from penstock.control.admin.fields import one_of
from penstock.control.declared.codec import Codec
from penstock.control.state.shadow.comparing import Standing
from penstock.control.state.shadow.condition import Condition, ShadowState
from penstock.control.state.shadow.shadows import Shadow
from penstock.control.state.shadow.spec import (
    MOST_PAIRS,
    ShadowSpec,
    Until,
)

SPECS = Codec(ShadowSpec)


class UntilModel(Model):
    """When a shadow ends by itself: at the earlier of what is said."""

    model_config = ConfigDict(extra="forbid")

    pairs: Annotated[StrictInt, Field(ge=1, le=MOST_PAIRS)] | None = Field(
        None, description="that count: the first comparable one of each session"
    )
    at: AwareDatetime | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.pairs is None and self.at is None:
            raise ValueError("say pairs, at, or both; leave until out for one that goes on")
        return self


@derived(
    ShadowSpec,
    max_concurrent=Annotated[StrictInt, Field(ge=1)],
    max_per_minute=Annotated[StrictInt, Field(ge=0)],
    until=(UntilModel | None, Field(None, description="null: until it is deleted")),
    margins=dict[str, float],
    guardrails=dict[str, str],
)
class ShadowSpecModel(Derived):
    """Whose requests are repeated where, how many of them, and what the answers are held to."""

    def to_spec(self) -> ShadowSpec:
        """The spec that this asks for; raises InvalidInput."""
        until = self.until
        ends = {"until_pairs": until.pairs or 0, "until_at": until.at} if until else {}
        return SPECS.value(self.model_dump() | ends)

    @classmethod
    def of_spec(cls, spec: ShadowSpec) -> ShadowSpecModel:
        """A spec as the API shows it."""
        return ShadowSpecModel.showing(spec, until=_until(spec))


class ShadowModel(ShadowSpecModel):
    """A shadow: what it says, and how it stands."""

    uid: str = Field(description="tells it from deleted namesakes")
    state: str = one_of(*ShadowState)
    message: str = Field(description="why it waits, or has ended by itself; empty: it does neither")
    verdict: str = one_of("better", "equal", "worse", "undecided")
    pairs: int = Field(description="that count: one a session")
    self_pairs: int = Field(description="of these, with the primary asked again")
    created_at: datetime

    @classmethod
    def of(cls, shadow: Shadow, condition: Condition, standing: Standing | None) -> ShadowModel:
        """A shadow as the API shows it."""
        stands = standing or Standing(shadow.uid, "undecided", 0, 0)
        told = {**condition._asdict(), **stands._asdict()}
        return cls.showing(shadow, until=_until(shadow.spec), **told)


class ShadowMadeModel(ShadowModel):
    """A shadow, and how much there is for it to compare."""

    pairs_a_day: float = Field(
        description="that its primary's traffic gives at most, by the busier of today and yesterday"
    )


class ShadowReportModel(ShadowMadeModel):
    """A shadow with each check."""

    report: dict[str, Any] = Field(
        description="verdict, reasons, pairs, each check with its counts, and what became of the "
        "requests that were sampled"
    )
    markdown: str = Field(description="the same for people")
    html: str = Field(description="a page, with distributions and the verdicts' way there")


def _until(spec: ShadowSpec) -> dict[str, Any] | None:
    until = spec.until
    return {"pairs": until.pairs or None, "at": until.at} if until != Until() else None
