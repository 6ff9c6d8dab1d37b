"""How deployments and replicas fare under load, as the admin API tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from penstock.control.admin.derived import Shown
from penstock.control.state.routing.slo import Burn

if TYPE_CHECKING:
    # Of the head: who calls the API does not import it.
    from penstock.control.managers.routing.traffic import DeploymentTraffic


class LoadModel(Shown):
    """What the gateways that report see of a deployment, added up."""

    queued: int = Field(default=0, description="requests that wait, now")
    in_flight: int = Field(default=0, description="requests at replicas, now")
    estimated_wait_ms: int = Field(
        default=0,
        description="of a request that came now, at the gateway where it would wait longest",
    )
    queue_wait_ms: float = Field(
        default=0, description="mean wait of the requests sent to a replica in the last minute"
    )
    requests_last_minute: int = 0
    rejected_last_minute: int = Field(default=0, description="of these, refused by admission")
    shed_share: float = Field(
        default=0, description="rejected of requests in the last minute: 0 to 1"
    )

    resumed: int = Field(
        default=0,
        description="answers whose replica was lost and that went on at another, as far back as"
        " gateways and this head run",
    )
    not_resumed: int = Field(default=0, description="likewise, that broke: clients were told")

    @classmethod
    def of(cls, traffic: DeploymentTraffic) -> LoadModel:
        """A deployment's traffic as the API shows it."""
        return cls.drawn(
            traffic,
            queue_wait_ms=round(traffic.queue_wait_ms, 3),
            requests_last_minute=traffic.last_minute.requests,
            rejected_last_minute=traffic.last_minute.rejected,
            shed_share=round(traffic.shed_share, 4),
        )


class BurnModel(Shown):
    """How fast one objective's budget of bad requests is used up."""

    objective: str = Field(description="ttft_p50, total_p99 or error_rate")
    target: str = Field(description="what is asked, for people")
    window_seconds: int = Field(description="300, 3600 or 21600, as far as this head listens")
    requests: int = Field(description="that the objective judged in the window")
    bad: int = Field(description="of these")
    burn_rate: float = Field(
        description="share of bad ones over the share that may be: 1 is just within"
    )

    @classmethod
    def of(cls, burn: Burn) -> BurnModel:
        """As the API shows it."""
        seconds = int(burn.window.total_seconds())
        return cls.drawn(burn, window_seconds=seconds, burn_rate=round(burn.rate, 3))


class DoubtModel(Shown):
    """A gateway sends a replica nothing by its own judgement."""

    gateway: str
    reason: str = Field(description="unreachable, failing, slow or no_progress")
    for_ms: int = Field(
        description="milliseconds that it stands yet, unless the replica proves well"
    )
