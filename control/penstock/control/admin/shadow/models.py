"""What the admin API takes and gives of shadows."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StrictInt, model_validator

from penstock.control.admin.fields import Dollars, Text, one_of
from penstock.control.state.shadow.comparing import Standing
from penstock.control.state.shadow.condition import Condition, ShadowState
from penstock.control.state.shadow.shadows import Shadow
from penstock.control.state.shadow.spec import (
    CHECKS,
    ENDPOINTS,
    MOST_PAIRS,
    Record,
    Sample,
    ShadowSpec,
    Until,
    parsed_candidate,
    parsed_primary,
)

Texts = Annotated[list[Text], Field(max_length=1000)]


class UntilModel(BaseModel):
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


class ShadowSpecModel(BaseModel):
    """Whose requests are repeated where, how many of them, and what the answers are held to."""

    model_config = ConfigDict(extra="forbid")

    name: Text = Field(examples=["bigger-model"])
    primary: Text = Field(
        description="deployment, or deployment:alias, whose requests are repeated",
        examples=["chat"],
    )
    candidate: Text = Field(
        description="deployment, or deployment:name@version, that they are repeated to; the "
        "primary itself: an A/A run, which has to come out equal",
        examples=["chat-int8"],
    )
    share_permille: StrictInt = Field(
        description="of the requests, in thousandths", ge=1, le=1000, examples=[100]
    )
    sample: Sample = Field(Sample.REQUEST, description="session: all of its requests, or none")
    tenants: Texts = Field(default_factory=list, description="empty: all that allow it")
    endpoints: Texts = Field(
        default_factory=list, description=f"empty: {', '.join(ENDPOINTS)}, which are all there are"
    )
    max_concurrent: StrictInt = Field(4, ge=1, description="repeated at a time, by each gateway")
    max_per_minute: StrictInt = Field(0, ge=0, description="likewise; 0: any number")
    until: UntilModel | None = Field(None, description="null: until it is deleted")
    record: Record = Field(
        Record.NONE,
        description="of prompts and answers of pairs that count, for the report's worst pairs, "
        "which operators see. none: numbers alone are kept; redacted: without personal data and "
        "secrets; full: as they are",
    )
    checks: Texts = Field(
        default_factory=list,
        description="that the verdict goes by; empty: the usual ones. The others are shown. There "
        f"are {', '.join(CHECKS)}; with an embedder semantic, with a judge judge",
    )
    margins: dict[str, float] = Field(
        default_factory=dict,
        description="by check: how much worse is too much, where it is not the usual one",
    )
    guardrails: dict[str, str] = Field(
        default_factory=dict,
        description="regular expressions that no answer may hold, by name, beside those of personal"
        " data: what the check guardrails looks for",
    )
    self_permille: Annotated[StrictInt, Field(ge=0, le=1000)] | None = Field(
        None,
        description="of those that are repeated, in thousandths: the primary is asked again, too. "
        "null: 250 until there are 500 such pairs, then 50",
    )
    usd_per_day: Dollars = Field(
        0.0, description="what it may cost; 0: no limit, which a provider has to have"
    )
    embedder: Text = Field(
        "",
        description="deployment that is asked what answers mean, for the check semantic, which is "
        "shown; empty: none is. A provider is asked only what a provider may answer",
        examples=["penstock-embed"],
    )
    judge: Text = Field(
        "",
        description="deployment that is asked which of two answers is better, in both orders, for "
        "the check judge, which the verdict goes by; empty: none is. A provider likewise",
        examples=["big-model"],
    )

    def to_spec(self) -> ShadowSpec:
        """The spec that this asks for; raises InvalidInput."""
        until = self.until
        lists = {name: tuple(getattr(self, name)) for name in ("tenants", "endpoints", "checks")}
        own = {
            "primary": parsed_primary(self.primary),
            "candidate": parsed_candidate(self.candidate),
            "until": Until(until.pairs or 0, until.at) if until else Until(),
            "margins": tuple(sorted(self.margins.items())),
            "guardrails": tuple(sorted(self.guardrails.items())),
        }
        return ShadowSpec(**(self.model_dump() | lists | own))


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
        spec, until = shadow.spec, shadow.spec.until
        stands = standing or Standing(shadow.uid, "undecided", 0, 0)
        own = {
            "primary": str(spec.primary),
            "candidate": str(spec.candidate),
            "until": {"pairs": until.pairs or None, "at": until.at} if until != Until() else None,
            "margins": dict(spec.margins),
            "guardrails": dict(spec.guardrails),
            "created_at": shadow.created_at,
        }
        return cls.model_validate(
            {**asdict(spec), **own, **condition._asdict(), **stands._asdict()}
        )


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
