"""What the admin API gives of canaries."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Self

from pydantic import Field

from penstock.control.admin.canary.spec_models import CanarySpecModel
from penstock.control.admin.derived import Model, Shown
from penstock.control.admin.fields import one_of
from penstock.control.state.canary.canary import Canary, CanaryState, PassedStep
from penstock.control.state.canary.counts import ArmCounts, Bins
from penstock.control.state.canary.guards import Verdict
from penstock.control.state.canary.times import quantile_us
from penstock.control.state.shadow.shadows import Shadows

if TYPE_CHECKING:
    # Of the head: who calls the API does not import it.
    from penstock.control.managers.canary.canaries import Account

US_A_MS = 1000
UNDECIDED = "undecided"  # of a shadow of which nobody has said anything


class TimesModel(Model):
    """How long something took, by sessions: a histogram's bins are right to 5 %."""

    sessions: int = Field(description="that had any")
    p50_ms: float
    p90_ms: float

    @classmethod
    def of(cls, bins: Bins) -> TimesModel:
        """Of a histogram."""
        p50, p90 = (round(quantile_us(bins, share) / US_A_MS, 3) for share in (0.5, 0.9))
        return cls(sessions=sum(count for _, count in bins), p50_ms=p50, p90_ms=p90)


class ArmModel(Shown):
    """What gateways counted of one arm in this step. A session is the one that a request names,
    else the tenant, key and body's hash, and is counted once."""

    name: str = Field(description="deployment, name@version, or revision N")
    sessions: int = Field(description="with a request that counts")
    bad_sessions: int = Field(description="of these: any request broke")
    errors: dict[str, int] = Field(description="bad sessions, by what broke first")
    answered_sessions: int = Field(description="with a whole answer")
    bad_finishes: int = Field(
        description="of these: the first one was cut at its length, filtered, or empty"
    )
    finishes: dict[str, int] = Field(description="whole answers, by finish reason")
    ttft: TimesModel = Field(description="to the first event of a stream")
    between_tokens: TimesModel = Field(description="the mean of an answer, from there on")
    total: TimesModel = Field(description="from a request's last byte to its answer's end")
    requests: int = Field(description="that count")
    prompt_tokens: int
    completion_tokens: int
    saved: int = Field(
        description="requests that broke at the candidate before their first event, and that the"
        " stable arm answered"
    )
    saved_sessions: int = Field(description="that had any of these")
    refused: int = Field(description="requests that both arms refused (4xx): nobody's failure")

    @classmethod
    def of(cls, name: str, counts: ArmCounts) -> ArmModel:
        """An arm as the API shows it."""
        return cls.drawn(
            counts,
            name=name,
            errors=dict(counts.errors),
            finishes=dict(counts.finishes),
            ttft=TimesModel.of(counts.ttft),
            between_tokens=TimesModel.of(counts.between_tokens),
            total=TimesModel.of(counts.total),
        )


class ArmsModel(Model):
    """Both, at the same time."""

    stable: ArmModel
    candidate: ArmModel


class FindingModel(Shown):
    """One guard, with the figures that its verdict was made from."""

    guard: str = Field(description="errors, finish, or a time and where: ttft_p50, total_p90")
    verdict: str = one_of(*Verdict)
    stable: float = Field(description="share of that arm's sessions")
    candidate: float
    stable_sessions: int = Field(description="that the share is of")
    candidate_sessions: int
    evidence: float = Field(description="that it is worse: natural logarithm")
    limit: float = Field(description="of the evidence: from here on it is rolled back")
    missing: str = Field(description="what an undecided one lacks")


class PassedStepModel(Shown):
    """A step that was judged good enough."""

    step: int
    permille: int
    at: datetime
    figures: dict[str, str] = Field(description="by guard, for people")

    @classmethod
    def of(cls, passed: PassedStep) -> PassedStepModel:
        """As the API shows it."""
        return cls.drawn(passed, figures=dict(passed.figures))


class CanaryRunModel(CanarySpecModel):
    """A canary: what it says, and where it stands."""

    uid: str = Field(description="of this run: another one counts anew")
    state: str = one_of(*CanaryState)
    why: str = Field(description="what is missing for the next step, or why it ended")
    step: int = Field(description="of `steps`, from 1")
    permille: int = Field(description="that gateways send to the candidate now")
    stable_arm: str = Field(description="deployment, name@version, or revision N; empty: not yet")
    candidate_arm: str
    revision: int = Field(
        description="of the target: the candidate, or what the promotion made; 0: none"
    )
    promoting: bool = Field(
        description="all steps are passed: the candidate takes the target's place"
    )
    created_at: datetime
    by: str
    reason: str
    routed_at: datetime | None = Field(
        description="when every gateway had this step's share; null: not yet"
    )
    ended_at: datetime | None

    @classmethod
    def of(cls, canary: Canary, **more: object) -> Self:
        """A canary as the API shows it."""
        own = {
            name: getattr(canary, name)
            for name in CanaryRunModel.model_fields
            if name not in CanarySpecModel.model_fields and hasattr(canary, name)
        }
        arms = {"stable_arm": canary.stable, "candidate_arm": canary.candidate}
        return cls.showing(canary.spec, **own, **arms, **more)


class CanaryStatusModel(CanaryRunModel):
    """A canary with all that its next decision is made from."""

    arms: ArmsModel
    findings: list[FindingModel] = Field(description="of the guards that have anything to judge")
    missing: list[str] = Field(description="before it goes on; empty: nothing")
    silent: list[str] = Field(
        description="gateways of which nothing is known: it holds until they are heard"
    )
    replicas_ready: int = Field(description="of the candidate")
    replicas_wanted: int = Field(description="before this step's share is given")
    shadow_verdict: str = Field(description="of the shadow that it names; empty: it names none")
    passed: list[PassedStepModel]

    @classmethod
    def told(cls, account: Account, shadows: Shadows) -> Self:
        """A canary as the API shows it alone."""
        canary, counts = account.canary, account.counts
        return cls.of(
            canary,
            arms=ArmsModel(
                stable=ArmModel.of(canary.stable, counts.stable),
                candidate=ArmModel.of(canary.candidate, counts.candidate),
            ),
            findings=[FindingModel.drawn(each) for each in account.findings],
            missing=list(account.missing),
            silent=list(account.silent),
            replicas_ready=account.replicas_ready,
            replicas_wanted=account.replicas_wanted,
            shadow_verdict=_verdict(canary, shadows),
            passed=[PassedStepModel.of(each) for each in canary.passed],
        )


def _verdict(canary: Canary, shadows: Shadows) -> str:
    """Of the shadow that it names."""
    if not canary.spec.shadow:
        return ""
    known = shadows.named.get(canary.spec.shadow)
    return shadows.compared.verdicts.get(known.uid, UNDECIDED) if known else UNDECIDED
