"""What `penstock serve` tells of what it runs, and what it makes of a head that refuses."""

from __future__ import annotations

from penstock.control.admin.rollout.models import GatewayModel, NodeModel, ReplicaModel
from penstock.control.errors import PenstockError, Unavailable, UnknownToken
from penstock.control.serving.watching import Watch
from tests.control.serving.pictures import gateway, node, replica


class Cluster:
    """One of each; it may refuse to be looked at."""

    def __init__(self) -> None:
        self.no: PenstockError | None = None
        self.state = "ready"

    async def replicas(self) -> list[ReplicaModel]:
        if self.no is not None:
            raise self.no
        return [replica(state=self.state, last_error="killed", restarts=self.state == "backoff")]

    async def nodes(self) -> list[NodeModel]:
        return [node()]

    async def gateways(self) -> list[GatewayModel]:
        return [gateway()]


async def test_a_head_that_takes_the_token_no_more_is_told_once_and_ends_nothing() -> None:
    cluster, told = Cluster(), list[str]()
    watch = Watch(cluster, told.append)
    await watch.look()
    cluster.no = UnknownToken("the head does not take this token")
    await watch.look()
    await watch.look()
    assert told == [
        "what happens is not shown any more, all goes on: the head does not take this token"
    ]
    cluster.no, cluster.state = None, "backoff"
    await watch.look()
    assert told[1:] == ["replica r-1 ended (killed): starts again"]


async def test_what_happened_while_the_head_was_away_is_told_when_it_is_back() -> None:
    cluster, told = Cluster(), list[str]()
    watch = Watch(cluster, told.append)
    await watch.look()
    cluster.no, cluster.state = Unavailable("nobody answers"), "backoff"
    await watch.look()
    assert not told
    cluster.no = None
    await watch.look()
    assert told == ["replica r-1 ended (killed): starts again"]
