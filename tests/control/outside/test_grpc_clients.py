"""The head's dialled connections, against real servers."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import grpc
import pytest

from penstock.control.errors import Code, HoldsStill, NodeUnreachable, ReplicaRefused
from penstock.control.outside.dialer import Dialer
from penstock.control.outside.grpc_clients import GrpcAgentClient
from penstock.control.placement.agents import AgentPlacement
from penstock.control.placement.placement import order_for
from penstock.control.state.fleet.replica import KeptAdapter, NodeFacts, ReplicaId, ReplicaState
from penstock.control.state.rollout.deployment import created
from penstock.control.state.stamp import Stamp
from tests.fakes.control_agent import serving_agent
from tests.fakes.control_errors import raises_code
from tests.fakes.control_values import NOON, UID, node, replica, spec

ORDER = order_for(created(spec(), NOON, uid=UID), replica("r9"))


def facts(address: str) -> NodeFacts:
    return NodeFacts(node().id, agent_address=address)


async def test_an_order_reaches_the_agent_and_its_status_comes_back() -> None:
    placement = AgentPlacement(lambda address: GrpcAgentClient(address, Dialer()))
    async with serving_agent() as agent:
        status = await placement.start(facts(agent.address), ORDER)
        again = await placement.start(facts(agent.address), ORDER)
        await placement.stop(
            facts(agent.address), ReplicaId("r9"), timedelta(seconds=1), sleep=False
        )
        await placement.stop(
            facts(agent.address), ReplicaId("r8"), timedelta(seconds=1), sleep=True
        )
    await placement.close()
    assert (status.replica_id, status.state) == ("r9", ReplicaState.READY)
    assert again == status
    assert (agent.stopped, agent.put_to_sleep) == (["r9"], ["r8"])


async def test_a_refusal_is_told_from_an_agent_that_is_away() -> None:
    placement = AgentPlacement(lambda address: GrpcAgentClient(address, Dialer()))
    async with serving_agent() as agent:
        agent.refuse = "no such engine"
        with pytest.raises(ReplicaRefused, match="no such engine"):
            await placement.start(facts(agent.address), ORDER)
    with pytest.raises(NodeUnreachable, match=agent.address):
        await placement.start(facts(agent.address), ORDER)
    with pytest.raises(NodeUnreachable, match="stop a replica"):
        await placement.stop(facts(agent.address), ReplicaId("r9"), timedelta(), sleep=False)
    await placement.close()


async def test_an_agent_of_another_cluster_is_not_told_from_what_it_refuses_but_from_whom() -> None:
    placement = AgentPlacement(lambda address: GrpcAgentClient(address, Dialer()))
    async with serving_agent() as agent:
        agent.refuse, agent.refusal = "another cluster", grpc.StatusCode.FAILED_PRECONDITION
        with pytest.raises(HoldsStill, match="another cluster"):
            await placement.start(facts(agent.address), ORDER)
    await placement.close()


async def test_what_a_replica_is_to_hold_reaches_its_agent_in_order() -> None:
    kept = (KeptAdapter("pirate@1", "a" * 64, pinned=True), KeptAdapter("json@2", source="/json"))
    placement = AgentPlacement(lambda address: GrpcAgentClient(address, Dialer()))
    order = replace(ORDER, adapters=kept[:1], max_adapters=4, max_adapter_rank=16)
    async with serving_agent() as agent:
        await placement.start(facts(agent.address), order)
        await placement.keep_adapters(facts(agent.address), order.replica_id, kept, ["old@1"])
        with raises_code(Code.UNKNOWN_REPLICA, match="no replica r1"):
            await placement.keep_adapters(facts(agent.address), ReplicaId("r1"), kept, ())
        again = await placement.start(facts(agent.address), order)
    await placement.close()
    (spec,) = agent.specs[:1]
    assert (spec.max_adapters, spec.max_adapter_rank) == (4, 16)
    assert [(a.name, a.digest, a.pinned) for a in spec.adapters] == [("pirate@1", "a" * 64, True)]
    (told,) = agent.kept
    assert [(a.name, a.digest, a.source, a.pinned) for a in told.keep.adapters] == [
        ("pirate@1", "a" * 64, "", True),
        ("json@2", "", "/json", False),
    ]
    assert list(told.keep.dropped) == ["old@1"]
    assert (again.adapters, again.adapter_digests) == (("pirate@1", "json@2"), ("a" * 64, ""))
    assert (again.adapter_slots, again.max_adapter_rank) == (4, 16)


@pytest.mark.parametrize(("revisions", "refused"), [([1, 2, 2], False), ([1, 1, 1], True)])
async def test_an_order_that_a_heartbeats_answer_overtook_is_sent_once_more(
    revisions: list[int], refused: bool
) -> None:
    async with serving_agent() as agent:
        agent.oldest = 2  # a heartbeat's answer told it of this revision before the order came
        stamps = iter([Stamp("c", 1, revision) for revision in revisions])
        client = GrpcAgentClient(agent.address, Dialer(), lambda: next(stamps))
        with pytest.raises(HoldsStill) if refused else nullcontext():
            await client.start_replica(ORDER)
        await client.close()
    assert len(agent.specs) == (0 if refused else 1)


async def test_an_agent_that_takes_no_list_is_told_from_one_that_is_away() -> None:
    placement = AgentPlacement(lambda address: GrpcAgentClient(address, Dialer()))
    async with serving_agent() as agent:
        agent.refuse, agent.refusal = "an older agent", grpc.StatusCode.UNIMPLEMENTED
        with pytest.raises(ReplicaRefused, match="an older agent"):
            await placement.keep_adapters(facts(agent.address), ReplicaId("r9"), (), ())
    with pytest.raises(NodeUnreachable, match="take what a replica is to hold"):
        await placement.keep_adapters(facts(agent.address), ReplicaId("r9"), (), ())
    await placement.close()
