"""What was decided about requests, as the API shows it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from penstock.control.admin.derived import Model, Shown
from penstock.control.state.observe.asking import GatewayAnswer, Kept
from penstock.control.state.observe.record import RequestRecord
from penstock.control.state.observe.story import Story


class RequestModel(Shown):
    """One request that has ended, in short."""

    request_id: str
    client_request_id: str = Field(description="the caller's own; empty: none")
    trace_id: str
    received_at: datetime
    gateway: str = Field(description="that keeps it")
    path: str
    tenant: str = Field(description="empty: it came without a key")
    key_id: str
    model: str = Field(description="as the request named it")
    prompt_version: str
    deployment: str = Field(description="where it ended; empty: nowhere")
    replica: str = Field(description="the last that it was sent to; empty: none")
    status: int = Field(description="what the client saw; 499: it left before")
    outcome: str
    reason: str = Field(
        description="why it is not the answer that was asked for: the drop reason, the error's code"
        " or why it was degraded; empty: it is"
    )
    rung: str = Field(description="that a degraded answer is owed to")
    attempts_made: int
    duration_ms: float
    first_byte_ms: float | None = Field(description="null: the client had none")
    prompt_tokens: int
    completion_tokens: int

    @classmethod
    def of(cls, kept: Kept) -> RequestModel:
        """A record in short."""
        return cls.drawn(kept, kept.record)


class RequestPage(Model):
    """Requests, the newest first, and where to go on."""

    requests: list[RequestModel]
    next: str | None = Field(description="pass as `after` for older ones; null: that is all")
    gateways: list[GatewayAnswer] = Field(description="whose requests these are, and whose are not")


class ExplainedModel(Model):
    """All that was decided about one request, and its story."""

    gateway: str = Field(description="that keeps it")
    record: RequestRecord
    story: Story
    namesakes: list[str] = Field(
        description="our ids of other requests that have this id of their caller's or trace's"
    )
    gateways: list[GatewayAnswer]


class LeftOutModel(Model):
    """What a follower is told where it takes requests more slowly than they end."""

    left_out: int = Field(description="requests that ended here and are not told")
