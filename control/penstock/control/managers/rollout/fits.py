"""What memory replicas of a template would take on the node that they would be put on."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final, Protocol

from penstock.control.errors import PenstockError
from penstock.control.placement.placement import ReplicaOrder
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.memory import MemoryFit
from penstock.control.state.fleet.replica import Node, NodeFacts, ReplicaId
from penstock.control.state.rollout.capacity import Capacity, devices_needed
from penstock.control.state.rollout.deployment import Deployment, DeploymentName, alone
from penstock.control.state.rollout.template import Template

MOST_ASKED: Final = 16
"""Deployments of one plan: the rest of a large one is judged as it is carried out."""
PATIENCE: Final = timedelta(seconds=10)


class AsksNodes(Protocol):
    """Asks node agents."""

    async def fit(self, node: NodeFacts, order: ReplicaOrder) -> MemoryFit:
        """What a replica would take on the node. Raises `PenstockError` where it does not tell."""


class Fits:
    """Asks on behalf of plans: whatever goes wrong is an answer, and never an error."""

    def __init__(self, nodes: AsksNodes) -> None:
        self._nodes = nodes

    async def of_changed(
        self, old: ClusterView, new: ClusterView, names: Collection[str]
    ) -> Mapping[str, MemoryFit]:
        """Of those of these deployments whose templates are new; by their names."""
        changed = [
            each
            for name in names
            if (each := new.deployments.get(DeploymentName(name))) and _is_new(old, each)
        ]
        asked = changed[:MOST_ASKED]
        told = await asyncio.gather(*(self._of(new, each) for each in asked))
        return {each.spec.name: fit for each, fit in zip(asked, told, strict=True)}

    async def on(self, node: Node, template: Template) -> MemoryFit:
        """On one node, on its first accelerators where it has any."""
        usable = node.facts.resources.usable[: devices_needed(template)]
        return await self._asked(node.facts, _order(template, [each.uuid for each in usable]))

    async def _of(self, view: ClusterView, deployment: Deployment) -> MemoryFit:
        deployment = alone(deployment) if deployment.judged else deployment
        template = deployment.target.template
        if template.engine != "vllm":
            return MemoryFit(reason=f"engine {template.engine} loads no model")
        found = Capacity(view).find(deployment)
        if found is None:
            return MemoryFit(reason="no node has room for it now")
        node_id, devices = found
        return await self._asked(view.nodes[node_id].facts, _order(template, devices))

    async def _asked(self, node: NodeFacts, order: ReplicaOrder) -> MemoryFit:
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                return await self._nodes.fit(node, order)
        except (PenstockError, TimeoutError) as error:
            return MemoryFit(reason=str(error) or "its agent does not answer", node=node.id)


def _is_new(old: ClusterView, deployment: Deployment) -> bool:
    known = old.deployments.get(deployment.spec.name)
    return known is None or known.template_digest != deployment.template_digest


def _order(template: Template, devices: Sequence[str]) -> ReplicaOrder:
    """For the question alone: nothing is started by it."""
    return ReplicaOrder(
        replica_id=ReplicaId(""),
        deployment=DeploymentName(""),
        deployment_uid="",
        template_digest="",
        generation=0,
        engine=template.engine,
        model=template.model,
        engine_args=template.engine_args,
        adapters=(),
        devices=tuple(devices),
        start_limit_ms=0,
        max_adapters=template.adapter_slots,
        max_adapter_rank=template.adapter_rank,
    )
