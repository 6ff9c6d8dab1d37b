"""A trial as the API shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from penstock.control.admin.derived import Shown
from penstock.control.state.tenancy.spend import NANO

if TYPE_CHECKING:
    # Of the head: who calls the API does not import it.
    from penstock.control.managers.rollout.trials import Trial


class TrialModel(Shown):
    """What came of the request."""

    deployment: str
    replica: str = Field(description="that answered")
    endpoint: str = Field(description="that was asked")
    text: str = Field(description="what it answered; empty for an embedding")
    finish_reason: str
    dimensions: int = Field(description="of the embedding; 0: it was asked for words")
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = Field(description="of the prompt tokens")
    cost_usd: float = Field(description="by a provider's prices; 0: it has none")
    ttft_ms: float = Field(description="milliseconds to the first of the answer")
    total_ms: float
    model: str = Field(description="path, hub id or the provider's id of what answered")
    model_version: str
    backend: str
    backend_version: str
    request_id: str = Field(description="its name in the replica's log")
    provider_request_id: str = Field(description="what the provider calls it; empty: nothing")

    @classmethod
    def of(cls, trial: Trial) -> TrialModel:
        """A trial as the API shows it."""
        said, outcome = trial.said, trial.outcome
        return cls.drawn(
            trial,
            outcome,
            said,
            endpoint=trial.path,
            finish_reason=outcome.finish_reason or said.finish_reason,
            cost_usd=outcome.cost_nanousd / NANO,
            ttft_ms=outcome.ttft_us / 1000,
            total_ms=outcome.total_us / 1000,
        )
